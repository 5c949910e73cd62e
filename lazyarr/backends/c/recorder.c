/* Records an operation in about a tenth of a microsecond.

   A node is the Python object that `graph/node.py` declares; its slots are written here in place. A
   Recorder is called with handles and numbers as the Python function that it stands for; what that
   function records for given types it records itself from then on. What it has not seen, and all that
   needs a decision, it leaves to the Python function.

   First of the files that make up the extension module. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef Py_GIL_DISABLED
#error "written for an interpreter with a global lock"
#endif

#define SLOT(object, at) (*(PyObject **)((char *)(object) + (at)))

static PyTypeObject *variable_type, *tensor_type;
static struct { Py_ssize_t type, expr, value, name, seq, depth, symbolic, site; } at;
static Py_ssize_t dtype_at;
static PyObject *unset, *counter, *files, *is_inside;

/* Where instances of a class keep a slot; -1 with an error set where they have none. */
static Py_ssize_t offset_of(PyObject *cls, const char *name) {
    PyObject *found = PyObject_GetAttrString(cls, name);
    if (!found) return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type)) offset = ((PyMemberDescrObject *)found)->d_member->offset;
    else PyErr_Format(PyExc_TypeError, "%s is no slot of %R", name, cls);
    Py_DECREF(found);
    return offset;
}

/* ------------------------------------------------------------------------- where a node was made */

enum { SITES = 256 };
static PyObject *sites[SITES]; /* the last ones; equal sites need no new tuple */

static PyObject *site_at(PyCodeObject *code, int instruction) {
    uintptr_t hash = ((uintptr_t)code >> 5) * 31 + (unsigned)instruction / 2;
    PyObject **kept = sites + hash % SITES;
    if (*kept && PyTuple_GET_ITEM(*kept, 0) == (PyObject *)code &&
        PyLong_AsLong(PyTuple_GET_ITEM(*kept, 1)) == instruction)
        return Py_NewRef(*kept);
    PyObject *made = Py_BuildValue("(Oi)", code, instruction);
    if (made) Py_XSETREF(*kept, Py_NewRef(made));
    return made;
}

/* The code and instruction of the first frame outside the package, or None. */
static PyObject *site_of_caller(void) {
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame) {
        PyObject *site = NULL;
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject *inside = Py_XNewRef(PyDict_GetItemWithError(files, code->co_filename));
        if (!inside && !PyErr_Occurred()) inside = PyObject_CallOneArg(is_inside, code->co_filename);
        if (inside == Py_False) site = site_at(code, PyFrame_GetLasti(frame));
        int done = inside != Py_True;
        PyFrameObject *back = done ? NULL : PyFrame_GetBack(frame);
        Py_XDECREF(inside);
        Py_DECREF(code);
        Py_DECREF(frame);
        if (done) return site;
        frame = back;
    }
    Py_RETURN_NONE;
}

/* --------------------------------------------------------------------------------------- a node */

/* Fill the slots of a node, as Variable.__init__ does. */
static int fill_node(PyObject *node, PyObject *type, PyObject *expr, PyObject *value, PyObject *name) {
    long depth = 0;
    int symbolic = expr == Py_None && value == unset;
    if (expr != Py_None) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(expr); i++) {
            PyObject *x = PyTuple_GET_ITEM(expr, i);
            if (Py_TYPE(x) != variable_type) continue;
            long below = PyLong_AsLong(SLOT(x, at.depth));
            if (below >= depth) depth = below + 1;
            symbolic |= SLOT(x, at.symbolic) == Py_True;
        }
    }
    Py_XSETREF(SLOT(node, at.type), Py_NewRef(type));
    Py_XSETREF(SLOT(node, at.expr), Py_NewRef(expr));
    Py_XSETREF(SLOT(node, at.value), Py_NewRef(value));
    Py_XSETREF(SLOT(node, at.name), Py_NewRef(name));
    Py_XSETREF(SLOT(node, at.symbolic), Py_NewRef(symbolic ? Py_True : Py_False));
    PyObject *number = Py_TYPE(counter)->tp_iternext(counter);
    PyObject *deep = PyLong_FromLong(depth);
    PyObject *site = site_of_caller();
    Py_XSETREF(SLOT(node, at.seq), number);
    Py_XSETREF(SLOT(node, at.depth), deep);
    Py_XSETREF(SLOT(node, at.site), site);
    return number && deep && site ? 0 : -1;
}

/* Variable.__init__(self, type, expr=None, value=UNSET, name=None) */
static PyObject *init_node(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static const char *const parameters[] = {"type", "expr", "value", "name"};
    PyObject *given[] = {NULL, Py_None, unset, Py_None};
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    if (n > 4) return PyErr_SetString(PyExc_TypeError, "Variable takes at most 4 arguments"), NULL;
    for (Py_ssize_t i = 0; i < n; i++) given[i] = args[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int k = 0;
        while (k < 4 && PyUnicode_CompareWithASCIIString(name, parameters[k])) k++;
        if (k == 4 || k < n) return PyErr_Format(PyExc_TypeError, "Variable: argument %R", name), NULL;
        given[k] = args[n + i];
    }
    if (!given[0]) return PyErr_SetString(PyExc_TypeError, "Variable needs a type"), NULL;
    if (given[1] != Py_None && !PyTuple_Check(given[1]))
        return PyErr_SetString(PyExc_TypeError, "an expression is a tuple"), NULL;
    if (fill_node(self, given[0], given[1], given[2], given[3])) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef init_def = {"__init__", (PyCFunction)(void (*)(void))init_node,
                               METH_FASTCALL | METH_KEYWORDS, NULL};

/* ------------------------------------------------------------------------------------ a recorder */

enum { KNOWN = 32 };
typedef struct { PyObject *a, *b, *call, *type; } Known; /* the types of operands, and what follows */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyTypeObject *handle; /* the class of handles, which keep their node at `held` */
    Py_ssize_t held;
    Py_ssize_t labels, name, notes; /* further slots of a handle, -1 where it has none */
    long deepest;     /* deeper nodes are left to the class of handles, which may compute them */
    PyObject *python; /* the function that this stands for */
    PyObject *only;   /* the call that may be learned, or None for any */
    Known known[KNOWN];
} Recorder;

typedef struct { PyObject *operand[2], *key[2], *labels, *name; Py_ssize_t n; } Operands;

/* Read what a handle says beside its node; 0 where the Python function must decide: where it has notes,
   or other labels than the handle before it. Handles of different names have a result without one. */
static int read_labels(const Recorder *r, PyObject *handle, Operands *o) {
    PyObject *labels = SLOT(handle, r->labels), *name = SLOT(handle, r->name);
    if (!labels || !name || SLOT(handle, r->notes) != Py_None) return 0;
    if (name != Py_None && !PyUnicode_CheckExact(name)) return 0;
    if (!o->labels) return o->labels = labels, o->name = name, 1;
    if (o->labels != labels) return 0;
    if (o->name != name && o->name != Py_None && (name == Py_None || PyUnicode_Compare(o->name, name)))
        o->name = Py_None;
    return 1;
}

/* Read what a call is given; 0 where the Python function must decide. Nothing is owned. */
static int read_operands(const Recorder *r, PyObject *const *args, size_t nargsf, PyObject *names, Operands *o) {
    o->n = PyVectorcall_NARGS(nargsf);
    o->key[1] = o->labels = o->name = NULL;
    if (o->n < 1 || o->n > 2 || (names && PyTuple_GET_SIZE(names))) return 0;
    int handles = 0;
    for (Py_ssize_t i = 0; i < o->n; i++) {
        PyObject *x = args[i];
        if (Py_TYPE(x) == r->handle) {
            if (r->labels >= 0 && !read_labels(r, x, o)) return 0;
            x = SLOT(x, r->held);
            if (!x || Py_TYPE(x) != variable_type) return 0;
            o->key[i] = SLOT(x, at.type);
            handles++;
        } else if (PyFloat_CheckExact(x) || PyLong_CheckExact(x)) {
            o->key[i] = (PyObject *)Py_TYPE(x);
        } else {
            return 0;
        }
        o->operand[i] = x;
    }
    return handles > 0;
}

static Known *find_known(Recorder *r, const Operands *o) {
    uintptr_t hash = ((uintptr_t)o->key[0] >> 4) * 7 + ((uintptr_t)o->key[1] >> 4) * 13;
    return r->known + (hash ^ hash >> 7) % KNOWN;
}

/* Keep what the Python function recorded, where it follows from the types alone. */
static void learn(Recorder *r, const Operands *o, PyObject *result) {
    if (Py_TYPE(result) != r->handle) return;
    PyObject *node = SLOT(result, r->held);
    if (!node || Py_TYPE(node) != variable_type) return;
    PyObject *expr = SLOT(node, at.expr);
    if (!expr || !PyTuple_CheckExact(expr) || PyTuple_GET_SIZE(expr) != o->n + 1) return;
    if (r->only != Py_None && PyTuple_GET_ITEM(expr, 0) != r->only) return;
    for (Py_ssize_t i = 0; i < o->n; i++) {
        PyObject *x = o->operand[i];
        if (PyTuple_GET_ITEM(expr, i + 1) != x) return;
        if (!PyLong_CheckExact(x)) continue;
        /* every integer is one of a floating dtype, not of the others; it stands beside a handle */
        PyObject *type = o->key[1 - i], *dtype = PyObject_TypeCheck(type, tensor_type) ? SLOT(type, dtype_at) : NULL;
        if (!dtype || !PyArray_DescrCheck(dtype) || ((PyArray_Descr *)dtype)->kind != 'f') return;
    }
    Known *known = find_known(r, o), old = *known;
    *known = (Known){Py_NewRef(o->key[0]), Py_XNewRef(o->key[1]), Py_NewRef(PyTuple_GET_ITEM(expr, 0)),
                     Py_NewRef(SLOT(node, at.type))};
    Py_XDECREF(old.a), Py_XDECREF(old.b), Py_XDECREF(old.call), Py_XDECREF(old.type);
}

static PyObject *ask_python(Recorder *r, PyObject *const *args, size_t nargsf, PyObject *names) {
    PyObject *result = PyObject_Vectorcall(r->python, args, nargsf, names);
    Operands o;
    if (result && read_operands(r, args, nargsf, names, &o)) learn(r, &o, result);
    return result;
}

static PyObject *record(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Recorder *r = (Recorder *)self;
    Operands o;
    if (!read_operands(r, args, nargsf, names, &o)) return ask_python(r, args, nargsf, names);
    const Known *known = find_known(r, &o);
    if (known->a != o.key[0] || known->b != o.key[1]) return ask_python(r, args, nargsf, names);
    PyObject *type = Py_NewRef(known->type), *call = Py_NewRef(known->call), *node = NULL, *out = NULL;
    PyObject *labels = Py_XNewRef(o.labels), *name = Py_XNewRef(o.name);
    for (Py_ssize_t i = 0; i < o.n; i++) Py_INCREF(o.operand[i]);
    PyObject *expr = PyTuple_New(o.n + 1);
    if (!expr) {
        Py_DECREF(call);
        for (Py_ssize_t i = 0; i < o.n; i++) Py_DECREF(o.operand[i]);
        goto done;
    }
    PyTuple_SET_ITEM(expr, 0, call);
    for (Py_ssize_t i = 0; i < o.n; i++) PyTuple_SET_ITEM(expr, i + 1, o.operand[i]);
    node = variable_type->tp_alloc(variable_type, 0);
    if (!node || fill_node(node, type, expr, unset, Py_None)) goto done;
    if (PyLong_AsLong(SLOT(node, at.depth)) > r->deepest && SLOT(node, at.symbolic) == Py_False) {
        out = PyObject_CallOneArg((PyObject *)r->handle, node);
    } else if ((out = r->handle->tp_alloc(r->handle, 0))) {
        SLOT(out, r->held) = node;
        node = NULL;
        if (labels) {
            SLOT(out, r->labels) = Py_NewRef(labels);
            SLOT(out, r->name) = Py_NewRef(name);
            SLOT(out, r->notes) = Py_NewRef(Py_None);
        }
    }
done:
    Py_XDECREF(labels);
    Py_XDECREF(name);
    Py_XDECREF(node);
    Py_XDECREF(expr);
    Py_DECREF(type);
    return out;
}

static PyObject *recorder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"handle", "slot", "python", "only", "deepest", "labels", "name", "notes", NULL};
    PyObject *handle, *python, *only;
    const char *slot, *further[3] = {NULL, NULL, NULL};
    long deepest;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!sOOl|sss", names, &PyType_Type, &handle, &slot, &python,
                                     &only, &deepest, further, further + 1, further + 2))
        return NULL;
    if (further[0] && !further[2]) return PyErr_SetString(PyExc_TypeError, "labels need name and notes"), NULL;
    if (!variable_type) return PyErr_SetString(PyExc_RuntimeError, "set_nodes comes first"), NULL;
    Py_ssize_t held = offset_of(handle, slot), at[3] = {-1, -1, -1};
    for (int i = 0; further[0] && i < 3; i++)
        if ((at[i] = offset_of(handle, further[i])) < 0) return NULL;
    Recorder *r = held < 0 ? NULL : (Recorder *)type->tp_alloc(type, 0);
    if (!r) return NULL;
    r->vectorcall = record;
    r->handle = (PyTypeObject *)Py_NewRef(handle);
    r->python = Py_NewRef(python), r->only = Py_NewRef(only);
    r->held = held, r->deepest = deepest;
    r->labels = at[0], r->name = at[1], r->notes = at[2];
    return (PyObject *)r;
}

static int recorder_traverse(PyObject *self, visitproc visit, void *arg) {
    Recorder *r = (Recorder *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(r->handle);
    Py_VISIT(r->python);
    Py_VISIT(r->only);
    for (int i = 0; i < KNOWN; i++) {
        Py_VISIT(r->known[i].a);
        Py_VISIT(r->known[i].b);
        Py_VISIT(r->known[i].call);
        Py_VISIT(r->known[i].type);
    }
    return 0;
}

static int recorder_clear(PyObject *self) {
    Recorder *r = (Recorder *)self;
    for (int i = 0; i < KNOWN; i++) {
        Py_CLEAR(r->known[i].a);
        Py_CLEAR(r->known[i].b);
        Py_CLEAR(r->known[i].call);
        Py_CLEAR(r->known[i].type);
    }
    return 0; /* the rest stays, so that a call is safe to the end */
}

static void recorder_dealloc(PyObject *self) {
    Recorder *r = (Recorder *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    recorder_clear(self);
    Py_XDECREF(r->handle);
    Py_XDECREF(r->python);
    Py_XDECREF(r->only);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *recorder_bind(PyObject *self, PyObject *object, PyObject *type) {
    (void)type;
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

/* Names and texts are those of the Python function. */
static PyObject *recorder_attribute(PyObject *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    return PyObject_GetAttr(((Recorder *)self)->python, name);
}

static PyMemberDef recorder_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Recorder, vectorcall), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(Recorder, python), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};
static PyType_Slot recorder_slots[] = {
    {Py_tp_new, recorder_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, recorder_traverse},
    {Py_tp_clear, recorder_clear},
    {Py_tp_dealloc, recorder_dealloc},
    {Py_tp_descr_get, recorder_bind},
    {Py_tp_getattro, recorder_attribute},
    {Py_tp_members, recorder_members},
    {0, NULL}};
static PyType_Spec recorder_spec = {
    "lazyarr_recorder.Recorder", sizeof(Recorder), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    recorder_slots};
