// What: what module.cpp calls.
#pragma once

#include <nanobind/nanobind.h>

void bind_engine(nanobind::module_& m);
