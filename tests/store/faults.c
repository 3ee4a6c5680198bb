/* Loaded before a process that writes a store: its k-th write, or forcing to disk, goes wrong.

   Only files whose path contains a stated name count. What goes wrong is an error number, a write
   of half of what was asked, or the end of the process by SIGKILL, before the write or in the
   middle of it. Beside that: how often files were forced to disk, how long that shall take at
   least, and a second set of files that holds what was forced and nothing else, as a disk does
   whose machine has lost its power. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { FAIL_ONCE, FAIL_FROM_HERE_ON, DIE_BEFORE, DIE_HALFWAY, SHORT_ONCE, SHORT_THEN_FAIL };
enum { GO_ON, REFUSE, DIE_AFTER_HALF, HALF };

static char name[256], mirror[3072];
static long seen, synced, place = -1, slow;
static int number, way;
static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER;

/* From now on the k-th call (from 0) on files of this name goes wrong; k < 0: none does. */
void fault_arm(const char *part, long k, int error, int how) {
    snprintf(name, sizeof name, "%s", part);
    seen = synced = 0;
    place = k;
    number = error;
    way = how;
}

long fault_seen(void) { return seen; }
long fault_synced(void) { return synced; }

/* Each forcing to disk takes so many microseconds longer. */
void fault_slow(long microseconds) { slow = microseconds; }

/* Each file that is forced to disk is copied to this folder as it then is, by its inode: it may
   get its name later. */
void fault_mirror(const char *folder) { snprintf(mirror, sizeof mirror, "%s", folder); }

/* Between the two the copies stay as they are: what the disk has at one moment. */
void fault_hold(void) { pthread_mutex_lock(&copying); }
void fault_release(void) { pthread_mutex_unlock(&copying); }

static int path_of(int handle, char *path, size_t room) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, room - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return 1;
}

static int ours(int handle) {
    char path[4096];
    return name[0] && path_of(handle, path, sizeof path) && strstr(path, name) != NULL;
}

static int verdict(int handle, size_t size) {
    if (!ours(handle)) return GO_ON;
    long k = seen++;
    if (place < 0 || k < place) return GO_ON;
    if (way == SHORT_ONCE || way == SHORT_THEN_FAIL) {
        if (k == place) return size > 1 ? HALF : GO_ON;
        return way == SHORT_THEN_FAIL ? REFUSE : GO_ON;
    }
    if (k > place && way != FAIL_FROM_HERE_ON) return GO_ON;
    if (way == DIE_BEFORE) kill(getpid(), SIGKILL);
    return way == DIE_HALFWAY ? DIE_AFTER_HALF : REFUSE;
}

static void *real(const char *symbol) {
    void *found = dlsym(RTLD_NEXT, symbol);
    if (!found) abort();
    return found;
}

ssize_t write(int handle, const void *data, size_t size) {
    ssize_t (*next)(int, const void *, size_t) = real("write");
    int what = verdict(handle, size);
    if (what == REFUSE) return errno = number, -1;
    if (what == DIE_AFTER_HALF) next(handle, data, size / 2), kill(getpid(), SIGKILL);
    return next(handle, data, what == HALF ? size / 2 : size);
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t offset) {
    ssize_t (*next)(int, const void *, size_t, off64_t) = real("pwrite64");
    int what = verdict(handle, size);
    if (what == REFUSE) return errno = number, -1;
    if (what == DIE_AFTER_HALF) next(handle, data, size / 2, offset), kill(getpid(), SIGKILL);
    return next(handle, data, what == HALF ? size / 2 : size, offset);
}

ssize_t pwrite(int handle, const void *data, size_t size, off_t offset) {
    return pwrite64(handle, data, size, offset);
}

static void copy_to_mirror(int handle) {
    char path[4096], target[8192], part[8300], *buffer;
    struct stat status;
    if (!mirror[0] || !path_of(handle, path, sizeof path) || fstat(handle, &status)) return;
    if (!S_ISREG(status.st_mode)) return;
    snprintf(target, sizeof target, "%s/%lu", mirror, (unsigned long)status.st_ino);
    snprintf(part, sizeof part, "%s.%d", target, handle);
    ssize_t (*put)(int, const void *, size_t) = real("write");
    /* Closing would let go of the locks that the process has on the file: it is left open. */
    int from = open(path, O_RDONLY), to = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    buffer = malloc(status.st_size + 1);
    if (from < 0 || to < 0 || !buffer) abort();
    ssize_t size = pread(from, buffer, status.st_size, 0);
    if (size < 0 || put(to, buffer, size) != size) abort();
    free(buffer);
    close(to);
    if (rename(part, target)) abort();
}

static int force(int handle, const char *symbol) {
    int (*next)(int) = real(symbol);
    int what = verdict(handle, 0);
    if (what == REFUSE) return errno = number, -1;
    if (what == DIE_AFTER_HALF) kill(getpid(), SIGKILL);
    if (ours(handle)) {
        __sync_fetch_and_add(&synced, 1);
        if (slow) usleep(slow);
        pthread_mutex_lock(&copying);
        copy_to_mirror(handle);
        pthread_mutex_unlock(&copying);
    }
    return next(handle);
}

int fsync(int handle) { return force(handle, "fsync"); }
int fdatasync(int handle) { return force(handle, "fdatasync"); }

int ftruncate64(int handle, off64_t size) {
    int (*next)(int, off64_t) = real("ftruncate64");
    int what = verdict(handle, 0);
    if (what == REFUSE) return errno = number, -1;
    if (what == DIE_AFTER_HALF) kill(getpid(), SIGKILL);
    return next(handle, size);
}

int ftruncate(int handle, off_t size) { return ftruncate64(handle, size); }
