// What: what module.cpp calls.
#pragma once

#include <nanobind/nanobind.h>

void bind_engine(nanobind::module_& m);
void bind_linkage(nanobind::module_& m);
