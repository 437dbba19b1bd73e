// The CUDA driver's functions on the CPU: a test double. Device memory is malloc'ed between red zones and poisoned when
// it is freed; a module is the path of a shared library made of the kernels' source; streams run at once; a captured
// graph is the list of its launches. Nothing selects it by itself: tests load it in the driver's place. What calls and
// kernels cost can be set, for tests of what follows from such times.
//
// A kernel NAME of a module library is found by two symbols:
//   launch_NAME(void **params, unsigned gx, gy, gz, bx, by, bz, size_t shared)   runs it
//   sizes_NAME   points to the sizes in bytes of its parameters, 0 at the end: a captured graph copies them

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <string>
#include <vector>

typedef int Status;
typedef uint64_t Address;
typedef void (*Launcher)(void **, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t);

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
       INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, LAUNCH_RESOURCES = 701,
       CAPTURE_UNSUPPORTED = 900 };

namespace {

const size_t ZONE = 256;
const unsigned char RED = 0xA5, POISON = 0xDB;
const size_t KEPT = size_t(64) << 20;

struct Block { size_t size; int device; };
struct Context { int device; };
struct Function { Launcher run; const unsigned *sizes; std::string name; int shared; };
struct Module { void *library; std::map<std::string, Function *> functions; };
struct Params { Function *func; unsigned grid[3], block[3], shared; void **params; void **extra; void *kern; void *ctx; };
struct Node { Node *origin; Function *func; unsigned grid[3], block[3], shared; std::vector<std::vector<char>> values; std::vector<void *> table; };
struct Graph { std::vector<Node *> nodes; };
struct Stream { int device; Graph *capture; };
struct Event { int device; bool recorded; std::chrono::steady_clock::time_point at; };

std::recursive_mutex guard;
std::map<Address, Block> live;
std::vector<std::pair<Address, Block>> freed;
size_t freed_bytes = 0;
size_t used[8];
size_t limit = size_t(1) << 30;
int devices = 2;
long fail_allocation = -1;
bool noop = false;
long faults = 0;
std::string fault_text;
std::map<std::string, long> counts;
std::map<std::string, long> costs;  // nanoseconds
long passed = 0, done = 0;  // nanoseconds of the host; when the device has nothing left to do
bool refuses_graphs = false;
Context contexts[8];
thread_local Context *current = nullptr;

typedef std::lock_guard<std::recursive_mutex> Held;

Status bad(Status code, const std::string &text) {
    fault_text = text;
    return code;
}

void report(const std::string &text) {
    faults++;
    fault_text = text;
}

bool filled(const unsigned char *from, size_t count, unsigned char with) {
    for (size_t i = 0; i < count; i++)
        if (from[i] != with) return false;
    return true;
}

unsigned char *bytes(Address at) { return reinterpret_cast<unsigned char *>(at); }

void check_zones(Address at, const Block &block) {
    if (!filled(bytes(at) - ZONE, ZONE, RED)) report("written before a block of " + std::to_string(block.size) + " bytes");
    if (!filled(bytes(at) + block.size, ZONE, RED)) report("written behind a block of " + std::to_string(block.size) + " bytes");
}

void release(size_t keep) {
    while (!freed.empty() && freed_bytes > keep) {
        Address at = freed.front().first;
        Block block = freed.front().second;
        if (!filled(bytes(at), block.size, POISON)) report("written after it was freed: " + std::to_string(block.size) + " bytes");
        check_zones(at, block);
        free(bytes(at) - ZONE);
        freed_bytes -= block.size;
        freed.erase(freed.begin());
    }
}

bool inside(Address at, size_t count) {
    if (!count) return true;
    auto found = live.upper_bound(at);
    if (found == live.begin()) return false;
    --found;
    return at + count <= found->first + found->second.size;
}

// Time passes by what calls cost the host and kernels the device, and by nothing else.
void spend(const char *what) { passed += costs[what]; }
void occupy(const char *what) { done = std::max(done, passed) + costs[what]; }
void wait() { passed = std::max(passed, done); }

Stream *capturing(void *stream) {
    Stream *s = static_cast<Stream *>(stream);
    return s && s->capture ? s : nullptr;
}

Node *record(Function *f, const unsigned *grid, const unsigned *block, unsigned shared, void **params) {
    Node *node = new Node();
    node->func = f;
    memcpy(node->grid, grid, sizeof node->grid);
    memcpy(node->block, block, sizeof node->block);
    node->shared = shared;
    for (int i = 0; f->sizes && f->sizes[i]; i++)
        node->values.emplace_back(static_cast<char *>(params[i]), static_cast<char *>(params[i]) + f->sizes[i]);
    for (auto &value : node->values) node->table.push_back(value.data());
    return node;
}

Node *copy(Node *from) {
    Node *made = record(from->func, from->grid, from->block, from->shared, from->table.data());
    made->origin = from;
    return made;
}

void drop(Graph *graph) {
    for (Node *node : graph->nodes) delete node;
    delete graph;
}

Status run(Function *f, const unsigned *grid, const unsigned *block, unsigned shared, void **params) {
    Held hold(guard);
    counts["launch"]++;
    if (!noop) f->run(params, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared);
    return OK;
}

}  // namespace

#define NEED_CONTEXT if (!current) return bad(INVALID_CONTEXT, "no context is current")

extern "C" {

// -- what tests say and ask ------------------------------------------------------------------------------------------
void host_limit(size_t size) { limit = size; }
void host_devices(int count) { devices = count; }
void host_fail_allocation(long in) { fail_allocation = in; }
void host_noop(int on) { noop = on; }
// What one call costs the host ("launch", "set", "graph launch"), or one kernel the device ("kernel", "graph kernel").
void host_cost(const char *what, long nanoseconds) { Held hold(guard); costs[what] = nanoseconds; }
double host_time() { Held hold(guard); return passed * 1e-9; }
void host_refuse_graphs(int on) { refuses_graphs = on; }
long host_count(const char *what) { Held hold(guard); return counts[what]; }
size_t host_live_bytes() { Held hold(guard); size_t sum = 0; for (auto &one : live) sum += one.second.size; return sum; }
long host_live_blocks() { Held hold(guard); return long(live.size()); }

// How many faults have been found, all memory looked at now; the last one's text is in host_fault_text.
long host_faults() {
    Held hold(guard);
    for (auto &one : live) check_zones(one.first, one.second);
    release(0);
    long found = faults;
    faults = 0;
    return found;
}
const char *host_fault_text() { return fault_text.c_str(); }

// -- devices ---------------------------------------------------------------------------------------------------------
Status cuInit(unsigned flags) { return flags ? INVALID_VALUE : OK; }
Status cuDriverGetVersion(int *out) { *out = 13000; return OK; }
Status cuDeviceGetCount(int *out) { *out = devices; return OK; }
Status cuDeviceGet(int *out, int index) {
    if (index < 0 || index >= devices) return bad(INVALID_DEVICE, "no such device");
    *out = index;
    return OK;
}
Status cuDeviceGetName(char *out, int size, int device) {
    strncpy(out, "host test double", size);
    return device < devices ? OK : INVALID_DEVICE;
}
Status cuDeviceTotalMem_v2(size_t *out, int) { *out = limit; return OK; }
Status cuDeviceGetAttribute(int *out, int attribute, int) {
    static const std::map<int, int> known = {{1, 1024}, {8, 49152}, {10, 32}, {16, 4}, {38, 1 << 20}, {75, 9}, {76, 0},
                                             {97, 232448}};
    auto found = known.find(attribute);
    *out = found == known.end() ? 0 : found->second;
    return OK;
}
Status cuDevicePrimaryCtxRetain(Context **out, int device) {
    contexts[device].device = device;
    *out = &contexts[device];
    return OK;
}
Status cuCtxSetCurrent(Context *context) { current = context; return OK; }
Status cuCtxGetCurrent(Context **out) { *out = current; return OK; }
Status cuCtxSynchronize() { NEED_CONTEXT; wait(); counts["synchronize"]++; return OK; }

// -- memory ----------------------------------------------------------------------------------------------------------
Status cuMemAlloc_v2(Address *out, size_t size) {
    NEED_CONTEXT;
    Held hold(guard);
    if (!size) return bad(INVALID_VALUE, "an allocation of 0 bytes");
    if (fail_allocation >= 0 && fail_allocation-- == 0) return bad(OUT_OF_MEMORY, "an allocation that had to fail");
    if (used[current->device] + size > limit) return bad(OUT_OF_MEMORY, "over the limit");
    unsigned char *base = static_cast<unsigned char *>(aligned_alloc(256, (size + 2 * ZONE + 255) / 256 * 256));
    if (!base) return OUT_OF_MEMORY;
    memset(base, RED, ZONE);
    memset(base + ZONE, 0xCD, size);
    memset(base + ZONE + size, RED, ZONE);
    *out = reinterpret_cast<Address>(base + ZONE);
    live[*out] = {size, current->device};
    used[current->device] += size;
    counts["alloc"]++;
    return OK;
}
Status cuMemFree_v2(Address at) {
    Held hold(guard);
    auto found = live.find(at);
    if (found == live.end()) { report("freed what is no block, or twice"); return bad(INVALID_VALUE, "no such block"); }
    Block block = found->second;
    check_zones(at, block);
    used[block.device] -= block.size;
    live.erase(found);
    memset(bytes(at), POISON, block.size);
    freed.push_back({at, block});
    freed_bytes += block.size;
    release(KEPT);
    counts["free"]++;
    return OK;
}
Status cuMemAllocAsync(Address *out, size_t size, void *) { return cuMemAlloc_v2(out, size); }
Status cuMemFreeAsync(Address at, void *) { return cuMemFree_v2(at); }
Status cuMemHostAlloc(void **out, size_t size, unsigned) {
    *out = malloc(size);
    counts["pinned"]++;
    return *out ? OK : OUT_OF_MEMORY;
}
Status cuMemFreeHost(void *at) { free(at); counts["unpinned"]++; return OK; }

#define COPY(what, device_side, to, from)                                                      \
    NEED_CONTEXT;                                                                              \
    Held hold(guard);                                                                          \
    if (capturing(stream)) return bad(CAPTURE_UNSUPPORTED, "a copy in a captured stream");     \
    if (device_side) return bad(ILLEGAL_ADDRESS, "a copy outside of the device's memory");     \
    if (count) memmove(to, from, count);                                                       \
    counts[what]++;                                                                            \
    return OK

Status cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t count, void *stream) {
    COPY("to device", !inside(to, count), bytes(to), from);
}
Status cuMemcpyDtoHAsync_v2(void *to, Address from, size_t count, void *stream) {
    COPY("to host", !inside(from, count), to, bytes(from));
}
Status cuMemcpyDtoDAsync_v2(Address to, Address from, size_t count, void *stream) {
    COPY("on device", !inside(to, count) || !inside(from, count), bytes(to), bytes(from));
}
Status cuMemcpyPeerAsync(Address to, void *, Address from, void *, size_t count, void *stream) {
    COPY("between devices", !inside(to, count) || !inside(from, count), bytes(to), bytes(from));
}
Status cuMemsetD8Async(Address to, unsigned char value, size_t count, void *stream) {
    NEED_CONTEXT;
    Held hold(guard);
    if (capturing(stream)) return bad(CAPTURE_UNSUPPORTED, "a fill in a captured stream");
    if (!inside(to, count)) return bad(ILLEGAL_ADDRESS, "a fill outside of the device's memory");
    if (count) memset(bytes(to), value, count);
    counts["set"]++;
    return OK;
}
Status cuMemGetInfo_v2(size_t *free_, size_t *total) {
    NEED_CONTEXT;
    Held hold(guard);
    *total = limit;
    *free_ = limit > used[current->device] ? limit - used[current->device] : 0;
    return OK;
}
Status cuPointerGetAttribute(void *out, int attribute, Address at) {
    Held hold(guard);
    auto found = live.upper_bound(at);
    if (found == live.begin()) return bad(INVALID_VALUE, "no device memory");
    --found;
    if (at >= found->first + found->second.size) return bad(INVALID_VALUE, "no device memory");
    if (attribute == 2) *static_cast<unsigned *>(out) = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE: device
    else if (attribute == 9) *static_cast<int *>(out) = found->second.device;  // DEVICE_ORDINAL
    else return bad(INVALID_VALUE, "an attribute that the double does not have");
    return OK;
}

// -- code ------------------------------------------------------------------------------------------------------------
Status cuModuleLoadData(Module **out, const char *path) {
    NEED_CONTEXT;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return bad(INVALID_IMAGE, dlerror());
    *out = new Module{library, {}};
    counts["module"]++;
    return OK;
}
Status cuModuleUnload(Module *module) {
    for (auto &one : module->functions) delete one.second;
    delete module;  // the library stays: the double's threads may still be inside its code
    return OK;
}
Status cuModuleGetFunction(Function **out, Module *module, const char *name) {
    Held hold(guard);
    Function *&found = module->functions[name];
    if (!found) {
        void *run = dlsym(module->library, (std::string("launch_") + name).c_str());
        if (!run) return bad(NOT_FOUND, std::string("no kernel ") + name);
        void *sizes = dlsym(module->library, (std::string("sizes_") + name).c_str());
        found = new Function{reinterpret_cast<Launcher>(run), sizes ? *static_cast<const unsigned **>(sizes) : nullptr, name,
                             49152};
    }
    *out = found;
    return OK;
}
Status cuFuncSetAttribute(Function *function, int attribute, int value) {
    if (attribute == 8) function->shared = value;
    return OK;
}
Status cuFuncGetAttribute(int *out, int, Function *) { *out = 1024; return OK; }
Status cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void *stream, void **params, void **) {
    NEED_CONTEXT;
    if (!gx || !gy || !gz || !bx || !by || !bz) return bad(INVALID_VALUE, "an empty grid or block");
    if (size_t(bx) * by * bz > 1024 || gy > 65535 || gz > 65535) return bad(INVALID_VALUE, "a grid or block too large");
    if (shared > unsigned(f->shared)) return bad(INVALID_VALUE, "more shared memory than was asked for");
    const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    if (Stream *s = capturing(stream)) {
        Held hold(guard);
        s->capture->nodes.push_back(record(f, grid, block, shared, params));
        return OK;
    }
    Held hold(guard);
    spend("launch");
    occupy("kernel");
    return run(f, grid, block, shared, params);
}

// -- streams and events ----------------------------------------------------------------------------------------------
Status cuStreamCreateWithPriority(Stream **out, unsigned, int) {
    NEED_CONTEXT;
    *out = new Stream{current->device, nullptr};
    counts["stream"]++;
    return OK;
}
Status cuStreamDestroy_v2(Stream *stream) { delete stream; counts["stream"]--; return OK; }
Status cuStreamSynchronize(Stream *) { wait(); counts["synchronize"]++; return OK; }
Status cuStreamQuery(Stream *) { return OK; }
Status cuStreamWaitEvent(Stream *, Event *, unsigned) { counts["wait"]++; return OK; }
Status cuEventCreate(Event **out, unsigned) {
    NEED_CONTEXT;
    *out = new Event{current->device, false, {}};
    counts["event"]++;
    return OK;
}
Status cuEventRecord(Event *event, Stream *) {
    event->recorded = true;
    event->at = std::chrono::steady_clock::now();
    return OK;
}
Status cuEventQuery(Event *) { return OK; }
Status cuEventSynchronize(Event *) { return OK; }
Status cuEventElapsedTime(float *out, Event *from, Event *to) {
    if (!from->recorded || !to->recorded) return bad(INVALID_HANDLE, "an event that was not recorded");
    *out = std::chrono::duration<float, std::milli>(to->at - from->at).count();
    return OK;
}
Status cuEventDestroy_v2(Event *event) { delete event; counts["event"]--; return OK; }

// -- graphs ----------------------------------------------------------------------------------------------------------
Status cuStreamIsCapturing(void *stream, int *out) { *out = capturing(stream) ? 1 : 0; return OK; }
Status cuStreamBeginCapture_v2(Stream *stream, int) {
    if (!stream) return bad(CAPTURE_UNSUPPORTED, "the default stream cannot be captured");
    if (stream->capture) return bad(CAPTURE_UNSUPPORTED, "the stream is captured already");
    stream->capture = new Graph();
    return OK;
}
Status cuStreamEndCapture(Stream *stream, Graph **out) {
    if (!capturing(stream)) return bad(CAPTURE_UNSUPPORTED, "the stream is not captured");
    *out = stream->capture;
    stream->capture = nullptr;
    return OK;
}
Status cuGraphCreate(Graph **out, unsigned) { *out = new Graph(); return OK; }
Status cuGraphAddKernelNode_v2(Node **out, Graph *graph, Node *const *, size_t, const Params *params) {
    graph->nodes.push_back(*out = record(params->func, params->grid, params->block, params->shared, params->params));
    return OK;
}
Status cuGraphInstantiateWithFlags(Graph **out, Graph *graph, unsigned long long) {
    if (refuses_graphs) return bad(OUT_OF_MEMORY, "a graph that had to fail");
    *out = new Graph();  // its nodes remember which they were made of
    for (Node *node : graph->nodes) (*out)->nodes.push_back(copy(node));
    counts["graph"]++;
    return OK;
}
Status cuGraphUpload(Graph *, Stream *) { return OK; }
Status cuGraphLaunch(Graph *graph, Stream *stream) {
    NEED_CONTEXT;
    if (capturing(stream)) return bad(CAPTURE_UNSUPPORTED, "a graph in a captured stream");
    Held hold(guard);
    counts["graph launch"]++;
    spend("graph launch");
    for (Node *node : graph->nodes) {
        occupy("graph kernel");
        run(node->func, node->grid, node->block, node->shared, node->table.data());
    }
    return OK;
}
Status cuGraphGetNodes(Graph *graph, Node **out, size_t *count) {
    if (out)
        for (size_t i = 0; i < *count && i < graph->nodes.size(); i++) out[i] = graph->nodes[i];
    *count = graph->nodes.size();
    return OK;
}
Status cuGraphNodeGetType(Node *, int *out) { *out = 0; return OK; }
Status cuGraphKernelNodeGetParams_v2(Node *node, Params *out) {
    *out = {node->func, {node->grid[0], node->grid[1], node->grid[2]}, {node->block[0], node->block[1], node->block[2]},
            node->shared, node->table.data(), nullptr, nullptr, nullptr};
    return OK;
}
Status cuGraphExecKernelNodeSetParams_v2(Graph *graph, Node *node, const Params *params) {
    Held hold(guard);
    spend("set");
    for (Node *&mine : graph->nodes)
        if (mine->origin == node) {  // the node of the graph that this is an instance of
            delete mine;
            mine = record(params->func, params->grid, params->block, params->shared, params->params);
            mine->origin = node;
            return OK;
        }
    return bad(INVALID_VALUE, "the node is none of this graph");
}
Status cuGraphExecDestroy(Graph *graph) { drop(graph); counts["graph"]--; return OK; }
Status cuGraphDestroy(Graph *graph) { drop(graph); return OK; }

// -- texts -----------------------------------------------------------------------------------------------------------
Status cuGetErrorName(int code, const char **out) {
    static const std::map<int, const char *> names = {
        {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}, {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"}, {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
        {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"}, {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"}, {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
        {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {LAUNCH_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
        {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}};
    auto found = names.find(code);
    *out = found == names.end() ? nullptr : found->second;
    return found == names.end() ? INVALID_VALUE : OK;
}
Status cuGetErrorString(int, const char **out) { *out = fault_text.c_str(); return OK; }

}  // extern "C"
