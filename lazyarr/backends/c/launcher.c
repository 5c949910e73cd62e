/* Calls compiled programs from Python in about a hundred nanoseconds.

   A Program knows the address of one entry function

       int64_t entry(void **buf, const int64_t *dim, void *arena, void **fn)

   and what goes in and comes out. Called with arrays it checks dtype, rank, layout and sizes, derives
   the unknown sizes, allocates results and scratch, calls, and returns the results. It converts
   nothing: on anything that does not fit exactly it hands the arguments to `on_mismatch`, a Python
   function, which converts or raises. A nonzero code of the entry goes to `on_code`. Results are
   new arrays of the pool, the arrays of `out=`, or donated inputs whose memory they may take.
   An entry may count from another number: its code is what it returns less `done`. */

typedef int64_t (*entry_function)(void **, const int64_t *, void *, void **);
typedef int64_t (*arena_function)(const int64_t *);

enum axis_kind { FIXED, BIND, AGREE, COMPUTED };
typedef struct {
    enum axis_kind kind;
    int64_t value;       /* FIXED: the size; BIND, AGREE: which unknown */
    const int64_t *code; /* COMPUTED */
} Axis;
typedef struct {
    PyArray_Descr *descr;
    int ndim;
    int computed; /* has it an axis of kind COMPUTED? */
    int donated;  /* may the program write into it? */
    Axis *axes;
} Slot;

enum returns { RETURN_LIST, RETURN_SINGLE, RETURN_TUPLE };
enum { SCALAR_BYTES = 16, SCRATCH = 1024, STACK_ARENA = 4096 };
#define SLOW_NS 50000            /* work that takes longer runs without the GIL */
#define LARGE_BYTES (1 << 20)    /* results this large do so from the first call on */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    entry_function entry;
    arena_function arena;
    void **table;
    int64_t done;       /* what the entry returns when all went well */
    Axis scratch;       /* bytes of scratch, where no function tells */
    Py_ssize_t n_in, n_out, n_dims, n_args, n_checks;
    Slot *slots;        /* inputs, then outputs */
    PyObject **bound;   /* for each input its fixed array, or NULL where the caller gives it */
    const int64_t **checks;
    int64_t *code;      /* all size programs */
    Axis *axes;
    Py_ssize_t *reuse;  /* for each output the input whose memory it may take, or -1 */
    PyObject *keep, *on_mismatch, *on_code;
    int returns, reject_one, trust, slow;
    unsigned calls;
} Program;

/* Store a Python or NumPy scalar that fits the slot exactly; 0 where it does not. */
static int store_scalar(const Slot *slot, PyObject *value, void *out) {
    int type = slot->descr->type_num;
    if (Py_TYPE(value) == slot->descr->typeobj) {
        PyArray_ScalarAsCtype(value, out);
        return 1;
    }
    if (PyFloat_CheckExact(value)) {
        if (type == NPY_DOUBLE) return *(double *)out = PyFloat_AS_DOUBLE(value), 1;
        if (type == NPY_FLOAT) return *(float *)out = (float)PyFloat_AS_DOUBLE(value), 1;
        return 0;
    }
    if (PyLong_CheckExact(value)) {
        int overflow;
        long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow) return 0;
        if (type == NPY_INT64) return *(int64_t *)out = v, 1;
        if (type == NPY_DOUBLE) return *(double *)out = (double)v, 1;
        if (type == NPY_INT32 && v >= INT32_MIN && v <= INT32_MAX) return *(int32_t *)out = (int32_t)v, 1;
        return 0;
    }
    if (PyBool_Check(value) && type == NPY_BOOL) return *(npy_bool *)out = value == Py_True, 1;
    return 0;
}

/* Check one input and bind its unknown sizes; return its data, or NULL where it does not fit. What
   the caller vouches for is not looked at, but for the rank. */
static void *take_input(const Slot *slot, PyObject *value, int64_t *dim, void *scalar, int trust) {
    if (Py_TYPE(value) != &PyArray_Type)
        return slot->ndim == 0 && store_scalar(slot, value, scalar) ? scalar : NULL;
    PyArrayObject *array = (PyArrayObject *)value;
    const int layout = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    if (PyArray_NDIM(array) != slot->ndim || (slot->donated && !PyArray_ISWRITEABLE(array))) return NULL;
    const npy_intp *shape = PyArray_DIMS(array);
    if (trust) {
        for (int i = 0; i < slot->ndim; i++)
            if (slot->axes[i].kind == BIND) dim[slot->axes[i].value] = shape[i];
        return PyArray_DATA(array);
    }
    if ((PyArray_FLAGS(array) & layout) != layout) return NULL;
    if (PyArray_DESCR(array) != slot->descr && !PyArray_EquivTypes(PyArray_DESCR(array), slot->descr))
        return NULL;
    for (int i = 0; i < slot->ndim; i++) {
        const Axis *axis = slot->axes + i;
        switch (axis->kind) {
        case FIXED: if (shape[i] != axis->value) return NULL; break;
        case BIND: dim[axis->value] = shape[i]; break;
        case AGREE: if (shape[i] != dim[axis->value]) return NULL; break;
        case COMPUTED: break; /* once all unknowns are bound */
        }
    }
    return PyArray_DATA(array);
}

/* Do sizes that depend on the unknowns agree? */
static int sizes_agree(const Program *p, PyObject *const *inputs, const int64_t *dim) {
    int64_t value;
    if (p->reject_one)
        for (Py_ssize_t i = 0; i < p->n_dims; i++)
            if (dim[i] == 1) return 0;
    if (p->trust) return 1;
    for (Py_ssize_t i = 0; i < p->n_in; i++) {
        const Slot *slot = p->slots + i;
        if (!slot->computed) continue;
        const npy_intp *shape = PyArray_DIMS((PyArrayObject *)inputs[i]);
        for (int k = 0; k < slot->ndim; k++) {
            if (slot->axes[k].kind != COMPUTED) continue;
            if (!evaluate(slot->axes[k].code, dim, &value) || value != shape[k]) return 0;
        }
    }
    for (Py_ssize_t i = 0; i < p->n_checks; i++)
        if (!evaluate(p->checks[i], dim, &value)) return 0;
    return 1;
}

/* Return one size of a result, below 0 where it has no value. */
static int64_t output_size(const Axis *axis, const int64_t *dim) {
    int64_t n = axis->kind == FIXED ? axis->value : axis->kind == COMPUTED ? -1 : dim[axis->value];
    return axis->kind == COMPUTED && !evaluate(axis->code, dim, &n) ? -1 : n;
}

/* Return a new uninitialised array of the pool. `*fits` is 0, without an error, for an unfit shape. */
static PyObject *new_output(const Slot *slot, const int64_t *dim, int *fits, size_t *total) {
    npy_intp shape[NPY_MAXDIMS];
    size_t bytes = (size_t)PyDataType_ELSIZE(slot->descr);
    for (int i = 0; i < slot->ndim; i++) {
        int64_t n = output_size(slot->axes + i, dim);
        if (n < 0) return *fits = 0, NULL;
        shape[i] = (npy_intp)n;
        if (__builtin_mul_overflow(bytes, (size_t)n, &bytes)) return PyErr_NoMemory();
    }
    char *data = pool_take(bytes);
    if (!data) return PyErr_NoMemory();
    Py_INCREF(slot->descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, slot->descr, slot->ndim, shape, NULL, data,
                                           NPY_ARRAY_CARRAY, NULL);
    if (!array) return pool_give(data), NULL;
    /* from here on the array frees the block, through the handler */
    ((PyArrayObject_fields *)array)->mem_handler = Py_NewRef(handler_capsule);
    PyArray_ENABLEFLAGS((PyArrayObject *)array, NPY_ARRAY_OWNDATA);
    PyTraceMalloc_Track(TRACE_DOMAIN, (uintptr_t)data, bytes ? bytes : 1);
    *total += bytes;
    return array;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Call the entry, without the GIL when the work is long: by the size of the results, or because a
   recent call was (one in sixteen is timed). */
static int64_t run(Program *p, void **buffers, const int64_t *dim, void *arena, size_t total) {
    int alone = p->slow || total >= LARGE_BYTES;
    if (!alone && p->calls++ % 16) return p->entry(buffers, dim, arena, p->table);
    int64_t start = now_ns(), code;
    if (alone) {
        Py_BEGIN_ALLOW_THREADS
        code = p->entry(buffers, dim, arena, p->table);
        p->slow = now_ns() - start > SLOW_NS;
        Py_END_ALLOW_THREADS
    } else {
        code = p->entry(buffers, dim, arena, p->table);
        p->slow = now_ns() - start > SLOW_NS;
    }
    return code;
}

/* What one call needs: laid out in one scratch block. */
typedef struct {
    void **buffers;
    PyObject **inputs, **outputs;
    int64_t *dim;
    char *scalars;
} Frame;

static size_t lay_out(const Program *p, Frame *f, char *block) {
    char *next = block;
    f->scalars = next, next += (size_t)p->n_in * SCALAR_BYTES;
    f->buffers = (void **)next, next += (size_t)(p->n_in + p->n_out) * sizeof(void *);
    f->inputs = (PyObject **)next, next += (size_t)p->n_in * sizeof(void *);
    f->outputs = (PyObject **)next, next += (size_t)p->n_out * sizeof(void *);
    f->dim = (int64_t *)next, next += (size_t)(p->n_dims + 1) * sizeof(int64_t);
    return (size_t)(next - block);
}

static PyObject *collect(const Program *p, Frame *f) {
    if (p->returns == RETURN_SINGLE) return f->outputs[0];
    PyObject *result = p->returns == RETURN_TUPLE ? PyTuple_New(p->n_out) : PyList_New(p->n_out);
    for (Py_ssize_t i = 0; i < p->n_out; i++) {
        if (!result) Py_DECREF(f->outputs[i]);
        else if (p->returns == RETURN_TUPLE) PyTuple_SET_ITEM(result, i, f->outputs[i]);
        else PyList_SET_ITEM(result, i, f->outputs[i]);
    }
    return result;
}

/* Do two arrays share memory? Both are contiguous. */
static int overlap(PyObject *one, PyObject *other) {
    if (Py_TYPE(one) != &PyArray_Type || Py_TYPE(other) != &PyArray_Type) return 0;
    const char *a = PyArray_BYTES((PyArrayObject *)one), *b = PyArray_BYTES((PyArrayObject *)other);
    npy_intp n = PyArray_NBYTES((PyArrayObject *)one), m = PyArray_NBYTES((PyArrayObject *)other);
    return n && m && a < b + m && b < a + n;
}

/* Can a given array hold output k? It shares memory with no input but `donor`, and no other output. */
static int may_hold(const Program *p, const Frame *f, Py_ssize_t k, PyObject *value, Py_ssize_t donor) {
    const Slot *slot = p->slots + p->n_in + k;
    if (Py_TYPE(value) != &PyArray_Type) return 0;
    PyArrayObject *array = (PyArrayObject *)value;
    if (!PyArray_ISCARRAY(array) || PyArray_NDIM(array) != slot->ndim) return 0;
    if (PyArray_DESCR(array) != slot->descr && !PyArray_EquivTypes(PyArray_DESCR(array), slot->descr)) return 0;
    for (int i = 0; i < slot->ndim; i++)
        if (PyArray_DIMS(array)[i] != output_size(slot->axes + i, f->dim)) return 0;
    for (Py_ssize_t i = 0; i < p->n_in; i++)
        if (i != donor && overlap(value, f->inputs[i])) return 0;
    for (Py_ssize_t i = 0; i < k; i++)
        if (overlap(value, f->outputs[i])) return 0;
    return 1;
}

/* Return the object that the caller gave for output k, or NULL for none. */
static PyObject *given_output(const Program *p, PyObject *out, Py_ssize_t k) {
    if (!out || p->returns == RETURN_SINGLE) return out;
    PyObject *value = PyTuple_Check(out) ? PyTuple_GET_ITEM(out, k) : PyList_GET_ITEM(out, k);
    return value == Py_None ? NULL : value;
}

/* Return output k: what the caller gave for it, the memory of a donated input, or a new array. */
static PyObject *make_output(const Program *p, const Frame *f, Py_ssize_t k, PyObject *out, int *fits,
                             size_t *total) {
    PyObject *value = given_output(p, out, k);
    if (value) return may_hold(p, f, k, value, -1) ? Py_NewRef(value) : (*fits = 0, NULL);
    Py_ssize_t donor = p->reuse[k];
    if (donor >= 0 && may_hold(p, f, k, f->inputs[donor], donor)) return Py_NewRef(f->inputs[donor]);
    return new_output(p->slots + p->n_in + k, f->dim, fits, total);
}

enum outcome { DONE, FAILED, MISMATCH, CODE };

/* Check, allocate, call. FAILED has set an error; the other outcomes leave no reference behind. */
static enum outcome call_in(Program *p, Frame *f, PyObject *const *args, PyObject *out, PyObject **result,
                            int64_t *code) {
    for (Py_ssize_t i = 0; i < p->n_in; i++) {
        PyObject *value = f->inputs[i] = p->bound[i] ? p->bound[i] : *args++;
        f->buffers[i] = take_input(p->slots + i, value, f->dim, f->scalars + i * SCALAR_BYTES, p->trust);
        if (!f->buffers[i]) return PyErr_Occurred() ? FAILED : MISMATCH;
    }
    if (!sizes_agree(p, f->inputs, f->dim)) return MISMATCH;

    enum outcome outcome = FAILED;
    char on_stack[STACK_ARENA] __attribute__((aligned(64)));
    char *arena = on_stack;
    size_t total = 0;
    Py_ssize_t made = 0;
    for (; made < p->n_out; made++) {
        int fits = 1;
        f->outputs[made] = make_output(p, f, made, out, &fits, &total);
        if (!f->outputs[made]) {
            outcome = fits ? FAILED : MISMATCH;
            goto undo;
        }
        f->buffers[p->n_in + made] = PyArray_DATA((PyArrayObject *)f->outputs[made]);
    }
    int64_t scratch = p->arena ? p->arena(f->dim) : output_size(&p->scratch, f->dim);
    if (scratch < 0) {
        outcome = MISMATCH;
        goto undo;
    }
    if (scratch > STACK_ARENA && !(arena = pool_take((size_t)scratch))) {
        PyErr_NoMemory();
        goto undo;
    }
    *code = run(p, f->buffers, f->dim, arena, total + (size_t)scratch) - p->done;
    if (arena != on_stack) pool_give(arena);
    if (!*code) {
        *result = collect(p, f);
        return *result ? DONE : FAILED;
    }
    outcome = CODE;
undo:
    while (made) Py_DECREF(f->outputs[--made]);
    return outcome;
}

static enum outcome call(Program *p, PyObject *const *args, PyObject *out, PyObject **result, int64_t *code) {
    Frame frame;
    char on_stack[SCRATCH] __attribute__((aligned(16)));
    size_t need = lay_out(p, &frame, on_stack);
    if (need <= SCRATCH) return call_in(p, &frame, args, out, result, code);
    char *block = PyMem_Malloc(need);
    if (!block) return PyErr_NoMemory(), FAILED;
    lay_out(p, &frame, block);
    enum outcome outcome = call_in(p, &frame, args, out, result, code);
    PyMem_Free(block);
    return outcome;
}

static PyObject *report_code(Program *p, PyObject *const *args, int64_t code) {
    PyObject *given = PyTuple_New(p->n_args);
    if (!given) return NULL;
    for (Py_ssize_t i = 0; i < p->n_args; i++) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    PyObject *result = PyObject_CallFunction(p->on_code, "LO", (long long)code, given);
    Py_DECREF(given);
    return result;
}

/* Is `out=`, of the right kind, the only argument given by name? */
static int only_out(const Program *p, PyObject *kwnames, PyObject *value) {
    if (PyTuple_GET_SIZE(kwnames) != 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "out"))
        return 0;
    return value == Py_None || p->returns == RETURN_SINGLE
           || (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == p->n_out)
           || (PyList_Check(value) && PyList_GET_SIZE(value) == p->n_out);
}

static PyObject *program_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Program *p = (Program *)self;
    PyObject *result, *out = NULL;
    int64_t code;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    int named = kwnames && PyTuple_GET_SIZE(kwnames);
    if (n == p->n_args && (!named || only_out(p, kwnames, args[n]))) {
        if (named && args[n] != Py_None) out = args[n];
        switch (call(p, args, out, &result, &code)) {
        case DONE: return result;
        case FAILED: return NULL;
        case CODE: return report_code(p, args, code);
        case MISMATCH: break;
        }
    }
    return PyObject_Vectorcall(p->on_mismatch, args, nargsf, kwnames);
}

PyDoc_STRVAR(exact_doc, "exact(*args)\n--\n\nCall; on a mismatch return NotImplemented instead of calling on_mismatch.");

static PyObject *program_exact(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Program *p = (Program *)self;
    PyObject *result;
    int64_t code;
    if (n == p->n_args) {
        switch (call(p, args, NULL, &result, &code)) {
        case DONE: return result;
        case FAILED: return NULL;
        case CODE: return report_code(p, args, code);
        case MISMATCH: break;
        }
    }
    Py_RETURN_NOTIMPLEMENTED;
}
