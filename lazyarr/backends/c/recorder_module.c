
/* The extension module: what it is told of the classes in Python, and what it offers. */

static int offsets(PyObject *cls, const char *const *names, Py_ssize_t *const *places, int n) {
    for (int i = 0; i < n; i++)
        if ((*places[i] = offset_of(cls, names[i])) < 0) return -1;
    return 0;
}

PyDoc_STRVAR(nodes_doc, "set_nodes(variable, tensor, unset, counter, files, is_inside)\n--\n\n"
                        "Tell how nodes are made; return a method that is Variable.__init__.");

static PyObject *set_nodes(PyObject *module, PyObject *args) {
    (void)module;
    static const char *const names[] = {"type", "expr", "value", "name", "seq", "depth", "symbolic", "site"};
    Py_ssize_t *const places[] = {&at.type, &at.expr, &at.value, &at.name, &at.seq, &at.depth, &at.symbolic, &at.site};
    PyObject *variable, *tensor, *none, *count, *known, *inside;
    if (!PyArg_ParseTuple(args, "O!O!OOO!O", &PyType_Type, &variable, &PyType_Type, &tensor, &none, &count,
                          &PyDict_Type, &known, &inside))
        return NULL;
    if (!PyIter_Check(count)) return PyErr_SetString(PyExc_TypeError, "the counter is an iterator"), NULL;
    if (offsets(variable, names, places, 8) || (dtype_at = offset_of(tensor, "dtype")) < 0) return NULL;
    PyObject *init = PyDescr_NewMethod((PyTypeObject *)variable, &init_def);
    if (!init) return NULL;
    Py_XSETREF(unset, Py_NewRef(none));
    Py_XSETREF(counter, Py_NewRef(count));
    Py_XSETREF(files, Py_NewRef(known));
    Py_XSETREF(is_inside, Py_NewRef(inside));
    Py_XSETREF(tensor_type, (PyTypeObject *)Py_NewRef(tensor));
    Py_XSETREF(variable_type, (PyTypeObject *)Py_NewRef(variable));
    return init;
}

PyDoc_STRVAR(walker_doc, "set_walker(...)\n--\n\nTell what keys and plans are made of.");

static PyObject *set_walker(PyObject *module, PyObject *args, PyObject *kwargs) {
    (void)module;
    static char *names[] = {"plain", "named", "call", "bakes", "number_word", "numbers", "as_argument",
                            "phantoms", "track", "tracked", "history", NULL};
    static const char *const of_call[] = {"_code", "_names", "op"};
    Py_ssize_t *const in_call[] = {&call_code_at, &names_at, &op_at};
    PyObject *plain, *named, *call, *objects[6];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!OOO!OOOnl", names, &PyType_Type, &plain, &PyType_Type,
                                     &named, &PyType_Type, &call, objects, objects + 1, &PyDict_Type, objects + 2,
                                     objects + 3, objects + 4, objects + 5, &tracked, &most_history))
        return NULL;
    if ((type_code_at = offset_of(plain, "_code")) < 0 || offsets(call, of_call, in_call, 3)) return NULL;
    if ((dims_at = offset_of(named, "dim_codes")) < 0) return NULL;
    PyObject **kept[] = {&bakes, &number_word, &numbers, &as_argument, &phantoms, &track};
    for (int i = 0; i < 6; i++) Py_XSETREF(*kept[i], Py_NewRef(objects[i]));
    PyObject *of_float = PyDict_GetItemWithError(numbers, (PyObject *)&PyFloat_Type);
    PyObject *of_int = PyDict_GetItemWithError(numbers, (PyObject *)&PyLong_Type);
    if (!of_float || !of_int) return PyErr_SetString(PyExc_KeyError, "numbers lacks float or int"), NULL;
    float_word = (int32_t)PyLong_AsLong(of_float), int_word = (int32_t)PyLong_AsLong(of_int);
    Py_XSETREF(named_type, (PyTypeObject *)Py_NewRef(named));
    Py_XSETREF(plain_type, (PyTypeObject *)Py_NewRef(plain));
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"set_nodes", set_nodes, METH_VARARGS, nodes_doc},
    {"set_walker", (PyCFunction)(void (*)(void))set_walker, METH_VARARGS | METH_KEYWORDS, walker_doc},
    {"force", (PyCFunction)(void (*)(void))force, METH_FASTCALL, force_doc},
    {"key", key, METH_O, key_doc},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "lazyarr_recorder",
                                        "Records operations and walks expressions.", -1, module_methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_lazyarr_recorder(void) {
    import_array();
    PyObject *module = PyModule_Create(&module_def);
    PyObject *type = module ? PyType_FromSpec(&recorder_spec) : NULL;
    if (!type || PyModule_AddObjectRef(module, "Recorder", type)) Py_CLEAR(module);
    Py_XDECREF(type);
    return module;
}
