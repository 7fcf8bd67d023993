/* The CPU's tables for any processor of this architecture. */
#define GY_NN_ISA base
#include "backend_cpu_table.h"
