/* check.h: the refusal of shapes, shared by the tables of all levels. */
#ifndef WEIR_CPU_CHECK_H
#define WEIR_CPU_CHECK_H

#include "layout.h"

const char *weir__cpu_check(int kernel, const void *args); /* as weir_cpu_table's check */

#endif
