/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What every unit test includes: cmocka and the headers that it wants before itself. */
#ifndef BS_TESTS_UNIT_H
#define BS_TESTS_UNIT_H

#include "config.h"

/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#define UNIT_TEST(f) cmocka_unit_test(f)

#endif
