"""Promises of SECURITY.md: no code from files is run, output is escaped, no network is used."""

import ast
import csv
import http.client
import io
import json
import pickle
import socket
import subprocess
import sys
import zipfile
from contextlib import chdir
from html.parser import HTMLParser
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import numpy as np
import pytest
import skops.io

import unflip
from support.audits import N_ROWS, NASTY, nasty_audit, nasty_ids, nasty_texts
from support.files import mixture_file, program
from unflip._utils.guarded_cells import unguarded
from unflip.auditing.html import audit_page
from unflip.auditing.shown_rows import ShownRows
from unflip.cli.explorer.command import _answer, _listening
from unflip.cli.files.safe_csv import csv_bytes

SOURCE = Path(unflip.__file__).parent
CANARY = "canary"
ATTACKS = [
    *NASTY,
    "' onmouseover='alert(1)",
    '" autofocus onfocus="alert(1)',
    "javascript:alert(1)",
    "</title><svg onload=alert(1)>",
    "</textarea><iframe src=//example.org>",
    "--><b>",
    "]]><b>",
    "=cmd|' /C calc'!A0",
    "\u202e\u2066<b>\u2069",
    "{{ 7 * 7 }}{% raw %}",
]


class Acts:
    """Makes a folder when it is unpickled."""

    def __reduce__(self):
        return (__import__("os").mkdir, (CANARY,))


def node(loader, module, name, **content):
    return {"__class__": name, "__module__": module, "__loader__": loader, **content}


def text_node(value):
    return node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


MKDIR = node("FunctionNode", "os", "mkdir", content={"module_path": "os", "function": "mkdir"})
ARGUMENTS = node("TupleNode", "builtins", "tuple", content=[text_node(CANARY)])
SCHEMAS = {
    "function": MKDIR,
    "partial": node(
        "PartialNode",
        "functools",
        "partial",
        content={
            "func": MKDIR,
            "args": ARGUMENTS,
            "kwds": node("DictNode", "builtins", "dict", content={}, key_types=None),
            "namespace": node("DictNode", "builtins", "dict", content={}, key_types=None),
        },
    ),
    "operator": node("OperatorFuncNode", "operator", "methodcaller", attrs=ARGUMENTS),
    "operator of another module": node("OperatorFuncNode", "os", "mkdir", attrs=ARGUMENTS),
    "method": node("MethodNode", "builtins", "str", content={"func": "mkdir", "obj": MKDIR}),
    "constructor": node("ConstructorFromReduceNode", "os", "mkdir", content=ARGUMENTS),
    "type": node(
        "TypeNode",
        "subprocess",
        "Popen",
        content={"__class__": "Popen", "__module__": "subprocess"},
    ),
    "object": node("ObjectNode", "subprocess", "Popen", content=ARGUMENTS),
    "unknown kind": node("ShellNode", "os", "system", content=[CANARY]),
}


def archive(schema):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(
            "schema.json",
            json.dumps({**schema, "protocol": 2, "_skops_version": skops.__version__}),
        )
    return buffer.getvalue()


class TestModels:
    @pytest.mark.parametrize("kind", SCHEMAS)
    def test_malicious_models_are_not_loaded(self, tmp_path, kind):
        self._check_not_loaded(archive(SCHEMAS[kind]), tmp_path)

    @pytest.mark.parametrize("name", ["m.skops", "m.unflip", "m.pkl"])
    def test_pickles_are_not_loaded(self, tmp_path, name):
        self._check_not_loaded(pickle.dumps(Acts()), tmp_path, name)

    def test_error_names_an_unknown_type(self, tmp_path):
        schema = node("ObjectNode", "somewhere.else", "Thing", content=ARGUMENTS)
        assert "somewhere.else.Thing" in self._check_not_loaded(archive(schema), tmp_path)

    def test_an_array_of_objects_is_not_unpickled(self, tmp_path):
        buffer = io.BytesIO()
        array = io.BytesIO()
        np.save(array, np.array([Acts()], dtype=object), allow_pickle=True)
        with zipfile.ZipFile(buffer, "w") as file:
            schema = node("NdArrayNode", "numpy", "ndarray", type="numpy", file="a.npy")
            file.writestr(
                "schema.json",
                json.dumps({**schema, "protocol": 2, "_skops_version": skops.__version__}),
            )
            file.writestr("a.npy", array.getvalue())
        self._check_not_loaded(buffer.getvalue(), tmp_path)

    def test_the_canary_is_made_by_pickle(self, tmp_path):
        with chdir(tmp_path):
            pickle.loads(pickle.dumps(Acts()))
        assert (tmp_path / CANARY).is_dir()

    @staticmethod
    def _check_not_loaded(content, folder, name="m.skops"):
        (folder / name).write_bytes(content)
        (folder / "data.csv").write_text("x,label\n1,a\n")
        with chdir(folder):
            error = program("predict", name, "data.csv", "--json", code=2).stderr
        assert {path.name for path in folder.iterdir()} == {name, "data.csv"}
        assert name in error
        return error


class Outline(HTMLParser):
    """The elements of a page with the names of their attributes, and all addresses."""

    def __init__(self):
        super().__init__()
        self.elements = []
        self.addresses = set()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.addresses |= {
            value for name, value in attrs if name in ("href", "src", "action", "formaction")
        }


def outline(page):
    parser = Outline()
    parser.feed(page.decode())
    parser.close()
    return parser


@pytest.fixture(scope="module")
def audit():
    return nasty_audit()


@pytest.fixture(scope="module")
def plain(audit):
    shown = ShownRows(texts=["text"] * N_ROWS, ids=["id"] * N_ROWS, source="source")
    return outline(audit_page.page(audit, shown=shown, assumptions=["word"]))


class TestPages:
    @pytest.mark.parametrize("attack", ATTACKS)
    def test_texts_add_no_element_and_no_attribute(self, audit, plain, attack):
        shown = ShownRows(texts=[attack] * N_ROWS, ids=[attack] * N_ROWS, source=attack)
        attacked = outline(audit_page.page(audit, shown=shown, assumptions=[attack]))
        assert attacked.elements == plain.elements
        assert attacked.addresses == plain.addresses

    def test_class_names_add_no_element_and_no_attribute(self, plain):
        for first, second in (
            ("a", "b"),
            ("a<script>", 'b" onclick="x'),
            ("</script>", "<img src=x>"),
        ):
            audit = nasty_audit(np.array([first, second]))
            shown = ShownRows(texts=nasty_texts(), ids=nasty_ids(), source="source")
            page = audit_page.page(audit, shown=shown, assumptions=["word"])
            assert outline(page).elements == plain.elements

    @pytest.mark.parametrize("attack", ATTACKS)
    def test_the_explorer_escapes_bad_parameters(self, attack):
        page = _answer(f"n={quote(attack, errors='replace')}").encode()
        assert not {"script", "img", "svg", "iframe", "b"} & {
            tag for tag, _ in outline(page).elements
        }

    @pytest.mark.parametrize(
        ("host", "status"), [("evil.example", 403), ("127.0.0.1", 200), ("localhost", 200)]
    )
    def test_the_explorer_answers_only_local_hosts(self, host, status):
        assert answer("/answer", host)[0] == status

    @pytest.mark.parametrize(
        "hosts",
        [
            [],
            [""],
            ["127.0.0.1:{port}@evil.example"],
            ["127.0.0.1:x@evil"],
            ["127.0.0.1.evil.example:{port}"],
            ["localhost.:{port}"],
            ["127.0.0.1:"],
            ["127.0.0.1:+80"],
            ["127.0.0.1:٨٠"],
            ["localhost:{port}:{port}"],
            ["evil.example#127.0.0.1"],
            ["localhost:{port}", "evil.example"],
            ["localhost:{port}, evil.example"],
        ],
    )
    def test_hosts_that_resemble_local_ones_are_rejected(self, hosts):
        assert answer_to(*hosts) == 403

    @pytest.mark.parametrize(
        "host", ["localhost", "127.0.0.1", "localhost:{port}", "127.0.0.1:9000"]
    )
    def test_local_hosts_are_answered(self, host):
        assert answer_to(host) == 200


def answer_to(*hosts):
    """Return the status of a request with these Host headers, in which {port} is the server's."""
    with _listening(None) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            lines = "".join(f"Host: {host.format(port=server.server_port)}\r\n" for host in hosts)
            with socket.create_connection(
                ("127.0.0.1", server.server_port), timeout=60
            ) as connection:
                connection.sendall(
                    f"GET /answer HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode()
                )
                return int(connection.makefile("rb").readline().split()[1])
        finally:
            server.shutdown()


def answer(path, host="localhost"):
    with _listening(None) as server:
        assert server.server_address[0] == "127.0.0.1"
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
            connection.request(
                "GET", path, headers={"Host": f"{host}:{server.server_port}", "Connection": "close"}
            )
            response = connection.getresponse()
            body = response.read()
            connection.close()
            return response.status, body
        finally:
            server.shutdown()


SIGNS = ("=", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


class TestTables:
    def test_no_cell_is_a_formula_and_all_are_restored(self):
        cells = [
            *ATTACKS,
            "=1+1",
            "+1",
            "-1",
            "-1+1",
            "@sum(A1)",
            "\t=1",
            "\r=1",
            "a\rb",
            "a\nb",
            "'=1",
            "",
            ",",
            '"',
        ]
        cells += [
            "\uff1d1+1",
            "\uff0b1",
            "\uff0d1",
            "\uff20sum(A1)",
            " =1",
            "\ufeff=1",
            "\u3000\uff1d1",
            "\n=1",
            "\x00=1",
        ]
        cells = [cell.encode("utf-8", "replace").decode() for cell in cells]
        written = csv_bytes(cells, [cells, cells[::-1]])
        lines = list(csv.reader(io.StringIO(written.decode(), newline=""), strict=True))
        assert [len(line) for line in lines] == [len(cells)] * 3
        for line, expected in zip(lines, (cells, cells, cells[::-1]), strict=True):
            assert [unguarded(cell) for cell in line] == expected
            assert [
                cell for cell in line if cell.lstrip("\ufeff\x00 \u3000\n\t\r").startswith(SIGNS)
            ] == []
            assert [cell for cell in line if cell.startswith(("+", "-"))] == [
                c for c in line if c in ("+1", "-1")
            ]


FORBIDDEN = {
    *(
        "eval",
        "exec",
        "compile",
        "__import__",
        "os.system",
        "os.popen",
        "tempfile.mktemp",
        "yaml.load",
        "marshal.loads",
    ),
    *(
        "pickle.load",
        "pickle.loads",
        "pickle.Unpickler",
        "joblib.load",
        "shelve.open",
        "dill.load",
        "dill.loads",
    ),
    *("cloudpickle.load", "cloudpickle.loads", "pandas.read_pickle", "pd.read_pickle", "pd.eval"),
}
MUST_BE_FALSE = {"shell", "allow_pickle"}  # options


def calls(tree):
    return ((ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call))


def forbidden_uses(source):
    tree = ast.parse(source)
    uses = [name for name, _ in calls(tree) if name in FORBIDDEN]
    options = [
        option for _, call in calls(tree) for option in call.keywords if option.arg in MUST_BE_FALSE
    ]
    uses += [option.arg for option in options if ast.unparse(option.value) != "False"]
    imported = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    return uses + [
        name for name in imported if name in ("pickle", "marshal", "shelve", "dill", "mktemp")
    ]


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_source_has_no_forbidden_calls(path):
    assert forbidden_uses(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "eval(x)",
        "import pickle",
        "subprocess.run(x, shell=True)",
        "np.load(x, allow_pickle=yes)",
        "tempfile.mktemp()",
    ],
)
def test_forbidden_calls_are_found(line):
    assert forbidden_uses(line)


OFFLINE = """
import sys

def forbid_sockets(event, arguments):
    if event.split(".")[0] == "socket" and event != "socket.gethostname":
        raise SystemExit(f"{event} {arguments}")

sys.addaudithook(forbid_sockets)
import importlib.util, pkgutil
import unflip
for module in pkgutil.walk_packages(unflip.__path__, "unflip."):
    needs_dask = ".dask_" in module.name
    if module.name != "unflip.__main__" and (importlib.util.find_spec("dask") or not needs_dask):
        importlib.import_module(module.name)
from unflip.datasets import make_mixture
X, y = make_mixture(200, 20, mean_norm=1.5, random_state=0)
unflip.LPClassifier(None).fit(X, y).predict(X)
unflip.audit(X, y, noise=None).to_html("own.html")
from unflip.cli.program import app
plan = "plan --n 100 --p 20 --mean-norm 1 --eps-pos 0.1 --eps-neg 0.1"
for words in ("audit d.csv --label label --out p.html", "fit d.csv --label label --out m.skops",
              "predict m.skops d.csv --out p.csv", plan,
              "reproduce fig1 --quick --workers 1 --out results"):
    app(words.split(), standalone_mode=False)
print("done")
if sys.argv[1:]:
    import socket
    socket.socket()
"""


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("offline")
    mixture_file(folder / "d.csv", n=100)
    command = [sys.executable, "-c", OFFLINE, "then", "call"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


def test_no_connection_is_opened(offline):
    assert offline.stdout.splitlines()[-1] == "done", offline.stderr


def test_a_connection_would_be_noticed(offline):
    assert "socket.__new__" in offline.stderr
    assert offline.returncode != 0
