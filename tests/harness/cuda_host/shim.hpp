// Runs generated CUDA C on the CPU: the threads of a block as fibers (or, with TANDEM_HOST_THREADS, as threads of the
// operating system, for ThreadSanitizer), blocks one after another. Barriers that not all threads reach abort.
#pragma once
#define TANDEM_HOST
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

struct Dim3 { unsigned x, y, z; };

namespace tandem_host {
enum class Wait { none, warp, block, done };
inline Dim3 grid_size, block_size;
inline std::vector<char> dynamic_bytes;
inline std::vector<uint64_t> exchanged;  // what each thread shows to its warp
void wait(Wait kind);
unsigned number();  // of the thread in its block
}

#ifdef TANDEM_HOST_THREADS
#include <barrier>
#include <memory>
#include <thread>
inline thread_local Dim3 threadIdx, blockIdx;

namespace tandem_host {
inline std::unique_ptr<std::barrier<>> block_barrier;
inline std::vector<std::unique_ptr<std::barrier<>>> warp_barriers;

inline unsigned number() { return threadIdx.x + block_size.x * (threadIdx.y + block_size.y * threadIdx.z); }

inline void wait(Wait kind) {
    if (kind == Wait::warp) warp_barriers[number() / 32]->arrive_and_wait();
    else block_barrier->arrive_and_wait();
}

template <class Body> void run_block(Dim3 at, unsigned count, const Body& body) {
    block_barrier = std::make_unique<std::barrier<>>(count);
    warp_barriers.clear();
    for (unsigned first = 0; first < count; first += 32)
        warp_barriers.push_back(std::make_unique<std::barrier<>>(count - first < 32 ? count - first : 32));
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < count; ++t)
        threads.emplace_back([=, &body] {
            blockIdx = at;
            threadIdx = {t % block_size.x, t / block_size.x % block_size.y, t / (block_size.x * block_size.y)};
            body();
            warp_barriers[t / 32]->arrive_and_drop();
            block_barrier->arrive_and_drop();
        });
    for (auto& thread : threads) thread.join();
}
}
#else
#include <deque>
#include <ucontext.h>
inline Dim3 threadIdx, blockIdx;

namespace tandem_host {
// A fiber runs one thread of each block. It begins as a context; later switches are jumps, which take a fraction of
// the time of swapcontext: that asks the kernel for the signal mask.
struct Fiber {
    ucontext_t first;
    void* at[5];
    std::vector<char> stack;
    bool started = false;
};
inline std::deque<Fiber> fibers;  // which stay where they are
inline std::vector<Wait> waits;
inline void* scheduler[5];
inline unsigned current;
inline const void* body_now;
inline void (*call_now)(const void*);

inline unsigned number() { return current; }

[[gnu::noinline]] inline void wait(Wait kind) {
    waits[current] = kind;
    if (!__builtin_setjmp(fibers[current].at)) __builtin_longjmp(scheduler, 1);
}

inline void start() {
    for (;;) {
        call_now(body_now);
        wait(Wait::done);
    }
}

inline bool all_wait(unsigned first, unsigned last, Wait kind) {
    for (unsigned t = first; t < last; ++t)
        if (waits[t] != kind && waits[t] != Wait::done) return false;
    return true;
}

inline bool release(unsigned first, unsigned last, Wait kind) {
    if (!all_wait(first, last, kind)) return false;
    bool any = false;
    for (unsigned t = first; t < last; ++t)
        if (waits[t] == kind) waits[t] = Wait::none, any = true;
    return any;
}

[[gnu::noinline]] inline void resume(unsigned t) {
    current = t;
    threadIdx = {t % block_size.x, t / block_size.x % block_size.y, t / (block_size.x * block_size.y)};
    Fiber& f = fibers[t];
    if (__builtin_setjmp(scheduler)) return;
    if (f.started) __builtin_longjmp(f.at, 1);
    f.started = true;
    f.stack.resize(64 * 1024);
    getcontext(&f.first);
    f.first.uc_stack.ss_sp = f.stack.data();
    f.first.uc_stack.ss_size = f.stack.size();
    makecontext(&f.first, start, 0);
    setcontext(&f.first);
}

template <class Body> void run_block(Dim3 at, unsigned count, const Body& body) {
    const char* const order = std::getenv("TANDEM_HOST_ORDER");
    const bool backward = order && *order == 'b';
    blockIdx = at;
    body_now = &body;
    call_now = [](const void* b) { (*static_cast<const Body*>(b))(); };
    if (fibers.size() < count) fibers.resize(count);
    waits.assign(count, Wait::none);
    while (!all_wait(0, count, Wait::done)) {
        for (unsigned k = 0; k < count; ++k) {
            const unsigned t = backward ? count - 1 - k : k;
            if (waits[t] == Wait::none) resume(t);
        }
        bool moved = release(0, count, Wait::block);
        for (unsigned first = 0; first < count; first += 32)
            moved |= release(first, first + 32 < count ? first + 32 : count, Wait::warp);
        if (!moved && !all_wait(0, count, Wait::done)) {
            std::fprintf(stderr, "not all threads of a block reached the same barrier\n");
            std::abort();
        }
    }
}
}
#endif

#define blockDim tandem_host::block_size
#define gridDim tandem_host::grid_size

inline void __syncthreads() { tandem_host::wait(tandem_host::Wait::block); }
inline void __syncwarp(unsigned = ~0u) { tandem_host::wait(tandem_host::Wait::warp); }

template <class T> T tandem_exchange(T value, unsigned source) {
    using namespace tandem_host;
    static_assert(sizeof(T) <= 8);
    std::memcpy(&exchanged[number()], &value, sizeof(T));
    wait(Wait::warp);
    T found = value;
    const unsigned place = number() / 32 * 32 + source;
    if (source < 32 && place < exchanged.size()) std::memcpy(&found, &exchanged[place], sizeof(T));
    wait(Wait::warp);
    return found;
}

template <class T> T __shfl_xor_sync(unsigned, T x, int mask) { return tandem_exchange(x, (tandem_host::number() % 32) ^ mask); }
template <class T> T __shfl_sync(unsigned, T x, int lane) { return tandem_exchange(x, lane % 32); }
template <class T> T __shfl_up_sync(unsigned, T x, unsigned delta) {
    const unsigned lane = tandem_host::number() % 32;
    return tandem_exchange(x, lane >= delta ? lane - delta : lane);
}
template <class T> T __shfl_down_sync(unsigned, T x, unsigned delta) {
    const unsigned lane = tandem_host::number() % 32;
    return tandem_exchange(x, lane + delta < 32 ? lane + delta : lane);
}

template <class To, class From> To tandem_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To found;
    std::memcpy(&found, &x, sizeof x);
    return found;
}
inline float __uint_as_float(unsigned x) { return tandem_bits<float>(x); }
inline float __int_as_float(int x) { return tandem_bits<float>(x); }
inline int __float_as_int(float x) { return tandem_bits<int>(x); }
inline double __longlong_as_double(long long x) { return tandem_bits<double>(x); }
inline long long __double_as_longlong(double x) { return tandem_bits<long long>(x); }
inline float __frsqrt_rn(float x) { return (float)(1.0 / std::sqrt((double)x)); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }

// ---- atomic functions ----
template <class T> T atomicCAS(T* at, T expected, T wanted) {
    __atomic_compare_exchange_n(at, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
template <class T, class Change> T tandem_atomic(T* at, const Change& change) {
    T before, after;
    __atomic_load(at, &before, __ATOMIC_RELAXED);
    do after = change(before);
    while (!__atomic_compare_exchange(at, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return before;
}
template <class T> T atomicAdd(T* at, T x) { return tandem_atomic(at, [x](T old) { return old + x; }); }
template <class T> T atomicMax(T* at, T x) { return tandem_atomic(at, [x](T old) { return old < x ? x : old; }); }
template <class T> T atomicMin(T* at, T x) { return tandem_atomic(at, [x](T old) { return old < x ? old : x; }); }

// ---- 16-bit floats ----
// The inverse of the error function by bisection; the host's library has none.
inline double erfinv(double x) {
    double size = std::fabs(x);
    if (!(size < 1)) return size == 1 ? std::copysign(HUGE_VAL, x) : NAN;
    double low = 0, high = 6;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        bool below = size < 0.5 ? std::erf(middle) < size : std::erfc(middle) > 1 - size;
        (below ? low : high) = middle;
    }
    return std::copysign(size < 1e-8 ? size * 0.886226925452758 : low, x);
}
inline float erfinvf(float x) { return (float)erfinv((double)x); }
inline float half_value(unsigned short bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 31  ? (fraction ? NAN : INFINITY)
                       : exponent == 0 ? std::ldexp((float)fraction, -24)
                                       : std::ldexp((float)(1024 + fraction), exponent - 25);
    return bits >> 15 ? -size : size;
}
inline unsigned short half_bits(double x) {
    const unsigned short sign = std::signbit(x) ? 0x8000 : 0;
    const double size = std::fabs(x);
    if (size != size) return 0x7e00;
    if (size == 0) return sign;
    if (size >= 65520.0) return sign | 0x7c00;
    int exponent;
    std::frexp(size, &exponent);
    const int step = exponent < -13 ? -24 : exponent - 11;  // of the last bit; rint rounds half to even
    const double whole = std::rint(std::ldexp(size, -step));
    return sign | (unsigned short)(exponent < -13 ? whole : (exponent + 13) * 1024 + whole);
}
inline unsigned short half_bits(float x) { return half_bits((double)x); }
inline unsigned short bfloat_bits(float x) {
    if (x != x) return 0x7fff;
    const unsigned bits = tandem_bits<unsigned>(x);
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline char* dynamic_shared() { return tandem_host::dynamic_bytes.data() + (-(uintptr_t)tandem_host::dynamic_bytes.data() & 15); }

// what the compiler calls for a misaligned access (-fsanitize=alignment)
extern "C" void __ubsan_handle_type_mismatch_v1(void*, void* at) {
    std::fprintf(stderr, "a kernel's access to %p is misaligned\n", at);
    std::abort();
}

namespace tandem_host {
// the sizes of a kernel's parameters, 0 at the end: a launch copies them
template <class... A> const unsigned* sizes_of(void (*)(A...)) {
    static const unsigned found[] = {(unsigned)sizeof(A)..., 0};
    return found;
}

template <class... A> const unsigned char* pointers_of(void (*)(A...)) {
    static const unsigned char found[] = {(unsigned char)std::is_pointer_v<A>..., 0};
    return found;
}

template <class... A, size_t... I>
void launch(void (*kernel)(A...), void** params, Dim3 grid, Dim3 block, size_t shared, std::index_sequence<I...>) {
    grid_size = grid, block_size = block;
    dynamic_bytes.assign(shared + 16, (char)0x5a);
    const unsigned count = block.x * block.y * block.z;
    exchanged.assign(count, 0);
    const auto body = [=] { kernel(*static_cast<std::remove_reference_t<A>*>(params[I])...); };
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) run_block({x, y, z}, count, body);
}
}

#define TANDEM_LAUNCH(name, bound)                                                                                \
    extern "C" { const unsigned* sizes_##name = tandem_host::sizes_of(name); }                                    \
    extern "C" { const unsigned char* pointers_##name = tandem_host::pointers_of(name); }                         \
    extern "C" { extern const unsigned bound_##name = bound; }                                                    \
    extern "C" void launch_##name(void** params, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
                                  unsigned bz, size_t shared) {                                                   \
        const auto go = [&]<class... A>(void (*kernel)(A...)) {                                                   \
            tandem_host::launch(kernel, params, {gx, gy, gz}, {bx, by, bz}, shared, std::index_sequence_for<A...>()); \
        };                                                                                                        \
        go(name);                                                                                                 \
    }
