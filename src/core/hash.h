/* XXH3 of long vectors. It uses the widest instructions of this processor if the library was built with its dispatcher
 * (88 instead of 17 GB/s on an AMD EPYC of family 26), otherwise those of the architecture. Both give the same
 * hashes. */
#ifndef GY_CORE_HASH_H
#define GY_CORE_HASH_H

#if GY_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#endif
