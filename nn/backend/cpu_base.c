/* The CPU's tables for any processor of this architecture. */
#define GY_NN_ISA base
#include "backend/cpu_table.h"
