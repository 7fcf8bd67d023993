/* Products with a matrix that many of them use, for one element type and instruction set: CBLAS packs its operands anew
 * for every product, which an LSTM that goes through time with the same weights pays at each step, and the more so the
 * fewer samples it has. Here the matrix is packed once, into panels of PANEL columns:
 *
 *     op(b)  k × n   | panel 0: k × PANEL, dense | panel 1 | … | the last, filled up with zeros |
 *     c      m × n   tiles of at most TILE rows and one panel, whose part of DEPTH rows stays in the innermost cache
 *
 * Every element of c is its own sum over k, in order, so its bits depend neither on m nor on the grid of threads.
 * Fused multiply-add is used where the processor has it, so bits differ between instruction sets, as CBLAS's do. */

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define MULTIPLY_ADD(x, y, sum) ((NAME(vector))FUSED(_mm512)((x), (y), (sum)))
#define TILE 8
#elif defined(__FMA__)
#define VECTOR_BYTES 32
#define MULTIPLY_ADD(x, y, sum) ((NAME(vector))FUSED(_mm256)((x), (y), (sum)))
#define TILE 4
#else
#define VECTOR_BYTES 16
#define MULTIPLY_ADD(x, y, sum) ((x) * (y) + (sum))
#define TILE 4
#endif

typedef REAL NAME(vector) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));
#define WIDTH (VECTOR_BYTES / sizeof(REAL))
#define PANEL (2 * WIDTH)
#define DEPTH ((size_t)256)
#define AT(p) (*(NAME(vector) *)(void *)(p))
#define FROM(p) (*(const NAME(vector) *)(const void *)(p))

static size_t NAME(packed_size)(size_t n, size_t k)
{
    return (n + PANEL - 1) / PANEL * PANEL * k;
}

static void NAME(pack)(bool transpose, size_t n, size_t k, const void *b, size_t stride, void *packed)
{
    REAL *to = packed;
    for (size_t first = 0; first < n; first += PANEL, to += k * PANEL) {
        const REAL *from = (const REAL *)b + (transpose ? first * stride : first);
        size_t cols = n - first < PANEL ? n - first : PANEL;
        if (cols < PANEL)
            memset(to, 0, k * PANEL * sizeof(REAL));
        for (size_t at = 0; at < k && transpose; at += WIDTH) { /* as much of each row as a vector holds */
            size_t end = k - at < WIDTH ? k : at + WIDTH;
            for (size_t c = 0; c < cols; c++)
                for (size_t i = at; i < end; i++)
                    to[i * PANEL + c] = from[c * stride + i];
        }
        for (size_t i = 0; i < k && !transpose; i++)
            memcpy(to + i * PANEL, from + i * stride, cols * sizeof(REAL));
    }
}

/* Adds `depth` products to each element of c, which has `rows` rows and a whole panel. `rows` is a constant at the
 * call, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void NAME(tile_of)(size_t rows, size_t depth, const REAL *a,
                                                                size_t stride_a, const REAL *panel, bool adds, REAL *c,
                                                                size_t stride_c)
{
    NAME(vector) sum[TILE][2] = {{{0}}};
    for (size_t r = 0; r < rows && adds; r++) {
        sum[r][0] = FROM(c + r * stride_c);
        sum[r][1] = FROM(c + r * stride_c + WIDTH);
    }
    for (size_t i = 0; i < depth; i++, panel += PANEL) {
        NAME(vector) left = FROM(panel), right = FROM(panel + WIDTH);
#pragma GCC unroll 8
        for (size_t r = 0; r < rows; r++) {
            NAME(vector) x = a[r * stride_a + i] - (NAME(vector)){0};
            sum[r][0] = MULTIPLY_ADD(x, left, sum[r][0]);
            sum[r][1] = MULTIPLY_ADD(x, right, sum[r][1]);
        }
    }
    for (size_t r = 0; r < rows; r++) {
        AT(c + r * stride_c) = sum[r][0];
        AT(c + r * stride_c + WIDTH) = sum[r][1];
    }
}

static void NAME(tile)(size_t rows, size_t depth, const REAL *a, size_t stride_a, const REAL *panel, bool adds, REAL *c,
                       size_t stride_c)
{
    while (rows > 0) {
        size_t now = rows >= TILE ? TILE : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
        switch (now) {
        case 1: NAME(tile_of)(1, depth, a, stride_a, panel, adds, c, stride_c); break;
        case 2: NAME(tile_of)(2, depth, a, stride_a, panel, adds, c, stride_c); break;
        case TILE: NAME(tile_of)(TILE, depth, a, stride_a, panel, adds, c, stride_c); break;
#if TILE != 4
        case 4: NAME(tile_of)(4, depth, a, stride_a, panel, adds, c, stride_c); break;
#endif
        }
        a += now * stride_a;
        c += now * stride_c;
        rows -= now;
    }
}

/* The last columns, which are fewer than a panel: by way of a tile that has all. */
static void NAME(edge)(size_t rows, size_t cols, size_t depth, const REAL *a, size_t stride_a, const REAL *panel,
                       bool adds, REAL *c, size_t stride_c)
{
    REAL whole[TILE * PANEL] = {0};
    for (size_t first = 0; first < rows; first += TILE) {
        size_t now = rows - first < TILE ? rows - first : TILE;
        for (size_t r = 0; r < now && adds; r++)
            memcpy(whole + r * PANEL, c + (first + r) * stride_c, cols * sizeof(REAL));
        NAME(tile)(now, depth, a + first * stride_a, stride_a, panel, adds, whole, PANEL);
        for (size_t r = 0; r < now; r++)
            memcpy(c + (first + r) * stride_c, whole + r * PANEL, cols * sizeof(REAL));
    }
}

/* Piece `index` of the grid over c: some rows of a and some panels. */
static void NAME(packed_piece)(const void *whole, size_t index)
{
    const struct gemm *g = whole;
    struct gy_nn_grid grid = gy_nn_team_grid();
    size_t row, rows, panel, panels;
    gyre_nn_shard(g->m, (int)(index / grid.cols), (int)grid.rows, &row, &rows);
    gyre_nn_shard((g->n + PANEL - 1) / PANEL, (int)(index % grid.cols), (int)grid.cols, &panel, &panels);
    const REAL *a = (const REAL *)g->a + row * g->stride_a;
    for (size_t p = panel; p < panel + panels; p++) {
        const REAL *packed = (const REAL *)g->b + p * PANEL * g->k;
        REAL *c = (REAL *)g->c + row * g->stride_c + p * PANEL;
        size_t cols = g->n - p * PANEL;
        for (size_t at = 0; at < g->k; at += DEPTH) {
            size_t depth = g->k - at < DEPTH ? g->k - at : DEPTH;
            bool adds = at > 0 || g->beta != 0;
            if (cols < PANEL)
                NAME(edge)(rows, cols, depth, a + at, g->stride_a, packed + at * PANEL, adds, c, g->stride_c);
            else
                NAME(tile)(rows, depth, a + at, g->stride_a, packed + at * PANEL, adds, c, g->stride_c);
        }
    }
}

static void NAME(gemm_packed)(size_t m, size_t n, size_t k, const void *a, size_t stride_a, const void *packed,
                              double beta, void *c, size_t stride_c)
{
    struct gemm g = {false, false, m, n, k, 1, beta, a, stride_a, packed, 0, c, stride_c};
    struct gy_nn_grid grid = gy_nn_team_grid();
    if (m == 0 || n == 0 || k == 0)
        return;
    if (grid.rows * grid.cols > 1 && m * n >= LEAST_SHARED / k)
        gy_nn_team_run(NAME(packed_piece), &g);
    else
        for (size_t i = 0; i < grid.rows * grid.cols; i++)
            NAME(packed_piece)(&g, i);
}

#undef VECTOR_BYTES
#undef MULTIPLY_ADD
#undef TILE
#undef WIDTH
#undef PANEL
#undef DEPTH
#undef AT
#undef FROM
