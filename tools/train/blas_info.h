/* The kernels that OpenBLAS computes with. */
#ifndef GYRE_TRAIN_KERNELS_H
#define GYRE_TRAIN_KERNELS_H

/* Called first: may execute the program again, with OPENBLAS_CORETYPE set. Returns if that is not needed. */
void kernels_choose(char **argv);

#endif
