// cuBLAS's functions on the CPU, as far as they are called: a test double. Matrices lie by columns in the memory of the
// driver's double; sums of 16-bit floats are made in float. What cuBLAS refuses is refused.

#include <complex>
#include <cstdint>
#include <cstring>

typedef int Status;
enum { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14, COMPUTE_32F = 68, COMPUTE_64F = 70 };

namespace {

struct Handle { uint64_t magic; void *stream; int device; };
const uint64_t MAGIC = 0x6375424c4153;
long calls = 0, batched_calls = 0;
Status refuses = OK;
long refusals = 0;
bool noop = false;
void *last_stream = nullptr;
// the driver's double: what is in a stream is done first; the current device; whether a stream is one of it
void (*settle)(void *) = nullptr;
int (*device)() = nullptr, (*has_stream)(void *) = nullptr;

float bits_to_float(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
uint32_t float_to_bits(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }

struct Brain {  // bfloat16
    uint16_t bits;
    operator float() const { return bits_to_float(uint32_t(bits) << 16); }
    static Brain of(float x) {
        uint32_t b = float_to_bits(x);
        if ((b & 0x7fffffff) > 0x7f800000) return {uint16_t((b >> 16) | 0x40)};
        return {uint16_t((b + 0x7fff + ((b >> 16) & 1)) >> 16)};
    }
};

struct Half { _Float16 x; operator float() const { return x; } static Half of(float x) { return {(_Float16)x}; } };
template <class T> struct Same { T x; operator T() const { return x; } static Same of(T x) { return {x}; } };

template <class Kept, class Wide>
void multiply(bool ta, bool tb, long m, long n, long k, const Wide *alpha, const void *a, long lda, const void *b, long ldb,
              const Wide *beta, void *c, long ldc) {
    const Kept *A = (const Kept *)a, *B = (const Kept *)b;
    Kept *C = (Kept *)c;
    for (long j = 0; j < n; j++)
        for (long i = 0; i < m; i++) {
            Wide sum(0);
            for (long l = 0; l < k; l++)
                sum += Wide(A[ta ? l + i * lda : i + l * lda]) * Wide(B[tb ? j + l * ldb : l + j * ldb]);
            sum *= *alpha;
            if (*beta != Wide(0)) sum += *beta * Wide(C[i + j * ldc]);
            C[i + j * ldc] = Kept::of(sum);
        }
}

size_t size_of(int type) { return type == R_16F || type == R_16BF ? 2 : type == R_32F ? 4 : type == C_64F ? 16 : 8; }

template <class Kept, class Wide>
void run(const void *alpha, const void *beta, bool ta, bool tb, long m, long n, long k, const void *a, long lda,
         const void *b, long ldb, void *c, long ldc) {
    multiply<Kept, Wide>(ta, tb, m, n, k, (const Wide *)alpha, a, lda, b, ldb, (const Wide *)beta, c, ldc);
}

Status gemm(Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int at, int lda, long long sa,
            const void *b, int bt, int ldb, long long sb, const void *beta, void *c, int ct, int ldc, long long sc,
            int count, int compute, int algo) {
    if (!h || h->magic != MAGIC) return NOT_INITIALIZED;
    if (refuses && refusals-- > 0) return refuses;
    bool wide = at == R_64F || at == C_64F;
    if (at != bt || at != ct || compute != (wide ? COMPUTE_64F : COMPUTE_32F) || algo != -1) return INVALID_VALUE;
    if (m < 0 || n < 0 || k < 0 || count < 0 || (ta | tb) & ~1) return INVALID_VALUE;
    auto least = [](int rows) { return rows > 1 ? rows : 1; };
    if (lda < least(ta ? k : m) || ldb < least(tb ? n : k) || ldc < least(m)) return INVALID_VALUE;
    if (count > 1 && sc < (long long)ldc * (n - 1) + m) return INVALID_VALUE;  // results would overlap
    if (device() != h->device || !has_stream(h->stream)) return EXECUTION_FAILED;  // handles are of one device
    last_stream = h->stream;
    if (noop) return OK;
    settle(h->stream);
    size_t size = size_of(at);
    for (long i = 0; i < count; i++) {
        const char *x = (const char *)a + i * sa * (long long)size, *y = (const char *)b + i * sb * (long long)size;
        char *z = (char *)c + i * sc * (long long)size;
        switch (at) {
            case R_16F: run<Half, float>(alpha, beta, ta, tb, m, n, k, x, lda, y, ldb, z, ldc); break;
            case R_16BF: run<Brain, float>(alpha, beta, ta, tb, m, n, k, x, lda, y, ldb, z, ldc); break;
            case R_32F: run<Same<float>, float>(alpha, beta, ta, tb, m, n, k, x, lda, y, ldb, z, ldc); break;
            case R_64F: run<Same<double>, double>(alpha, beta, ta, tb, m, n, k, x, lda, y, ldb, z, ldc); break;
            case C_32F: {
                typedef std::complex<float> T;
                run<Same<T>, T>(alpha, beta, ta, tb, m, n, k, x, lda, y, ldb, z, ldc);
                break;
            }
            case C_64F: {
                typedef std::complex<double> T;
                run<Same<T>, T>(alpha, beta, ta, tb, m, n, k, x, lda, y, ldb, z, ldc);
                break;
            }
            default: return INVALID_VALUE;
        }
    }
    return OK;
}

}  // namespace

extern "C" {

// -- what tests say and ask
void blas_noop(int on) { noop = on; }
void blas_driver(void (*settles)(void *), int (*asks)(), int (*knows)(void *)) { settle = settles, device = asks, has_stream = knows; }
void blas_refuse(int status, long times) { refuses = status; refusals = times; }
long blas_calls() { return calls; }
long blas_batched_calls() { return batched_calls; }
void *blas_last_stream() { return last_stream; }

// -- cuBLAS
Status cublasCreate_v2(Handle **made) {
    if (device() < 0) return NOT_INITIALIZED;
    *made = new Handle{MAGIC, nullptr, device()};
    return OK;
}

Status cublasSetStream_v2(Handle *h, void *stream) {
    if (!h || h->magic != MAGIC) return NOT_INITIALIZED;
    h->stream = stream;
    return OK;
}

Status cublasGemmEx(Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int at, int lda,
                    const void *b, int bt, int ldb, const void *beta, void *c, int ct, int ldc, int compute, int algo) {
    calls++;
    return gemm(h, ta, tb, m, n, k, alpha, a, at, lda, 0, b, bt, ldb, 0, beta, c, ct, ldc, 0, 1, compute, algo);
}

Status cublasGemmStridedBatchedEx(Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int at,
                                  int lda, long long sa, const void *b, int bt, int ldb, long long sb, const void *beta,
                                  void *c, int ct, int ldc, long long sc, int count, int compute, int algo) {
    calls++;
    batched_calls++;
    return gemm(h, ta, tb, m, n, k, alpha, a, at, lda, sa, b, bt, ldb, sb, beta, c, ct, ldc, sc, count, compute, algo);
}

}  // extern "C"
