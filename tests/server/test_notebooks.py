"""A notebook in an editor: its cells are documents, and one program."""

from __future__ import annotations

import json

from lsp_editor import EVERYTHING, editor, play
from lsprotocol import types
from made_notebooks import code, notebook

from streamlint.server.jobs import FindingRow, Repair
from streamlint.server.notebooks import Notebooks

LOAD = "%matplotlib inline\nimport torch\nhost = torch.empty(1 << 24)"
TRAIN = "%%time\ntext = '𝄞'; device = host.to('cuda', non_blocking=True)"
READ = "copy = device.to('cpu', non_blocking=True)\nprint(copy.numpy())"
WAIT = "torch.cuda.current_stream().synchronize()\n"


def uri(name):
    return f"vscode-notebook-cell:/work/nb.ipynb#{name}"


def opened(cells, path="file:///work/nb.ipynb"):
    """What an editor says of a notebook with these cells of code: their texts by name."""
    listed = [types.NotebookCell(types.NotebookCellKind.Code, uri(name)) for name in cells]
    items = [types.TextDocumentItem(uri(name), "python", 1, text) for name, text in cells.items()]
    return types.DidOpenNotebookDocumentParams(types.NotebookDocument(path, "jupyter-notebook", 1, listed), items)


def changed(version, path="file:///work/nb.ipynb", **cells):
    event = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(**cells))
    return types.DidChangeNotebookDocumentParams(types.VersionedNotebookDocumentIdentifier(version, path), event)


def typed(name, version, text, place=None):
    """A cell's new text, or a text that is put at a place."""
    change = types.TextDocumentContentChangeWholeDocument(text)
    if place is not None:
        at = types.Position(*place)
        change = types.TextDocumentContentChangePartial(types.Range(at, at), text)
    return types.NotebookDocumentCellContentChanges(types.VersionedTextDocumentIdentifier(version, uri(name)), [change])


def inserted(at, name, text, deleted=0):
    array = types.NotebookCellArrayChange(at, deleted, [types.NotebookCell(types.NotebookCellKind.Code, uri(name))])
    return types.NotebookDocumentCellChangeStructure(array, did_open=[types.TextDocumentItem(uri(name), "python", 1, text)])


def told(*place):
    trail = (("made here", "/work/nb.ipynb", (2, 7, 2, 12)), ("or there", "/work/a.py", (1, 2, 3, 4)))
    return FindingRow("SL001", "warning", "", "", place, trail)


def test_places_go_to_cells_and_back():
    """Of the program: three rows of a, one between, two of b."""
    known = Notebooks()
    open_one = known.open(opened({"a": LOAD, "skipped": "%%cuda\nint x;", "b": TRAIN}), "/work/nb.ipynb", "utf-16")
    cell, row = open_one.located(told(5, 3, 5, 9))
    assert (cell.uri, row.range) == (uri("b"), (1, 3, 1, 9))
    assert row.trail == (("made here", uri("a"), (2, 7, 2, 12)), ("or there", "/work/a.py", (1, 2, 3, 4)))
    assert open_one.located(told(3, 0, 3, 1))[1].range == (2, 27, 2, 27)  # behind the end of a cell is its end
    assert open_one.inside(uri("b"), (1, 3, 1, 9)) == (5, 3, 5, 9)
    assert open_one.inside(uri("skipped"), (0, 0, 0, 1)) is None
    (edit,) = open_one.edits(Repair("", "safe", (((2, 27, 2, 27), "x"),)))
    assert (edit[0].uri, edit[1:]) == (uri("a"), ((2, 27, 2, 27), "x"))


def test_cells_move_and_change():
    known = Notebooks()
    one = known.open(opened({"a": "x = 1", "b": "y = '𝄞'\n"}), "/work/nb.ipynb", "utf-16")
    known.change(changed(2, text_content=[typed("b", 2, "z", (0, 7))]))
    known.change(changed(3, structure=inserted(1, "c", "w = 1")))
    assert [cell.text for cell in one.cells] == ["x = 1", "w = 1", "y = '𝄞z'\n"]
    moved = types.NotebookCellArrayChange(0, 3, [types.NotebookCell(types.NotebookCellKind.Code, uri(name)) for name in ("b", "a")])
    _, gone = known.change(changed(4, structure=types.NotebookDocumentCellChangeStructure(moved)))
    assert [cell["source"] for cell in json.loads(one.text)["cells"]] == ["y = '𝄞z'\n", "x = 1"]
    assert ([cell.uri for cell in gone], known.of(uri("c")), one.version) == ([uri("c")], None, 4)
    known.close(one)
    assert known.of(uri("a")) is None


def test_a_user_edits_a_notebook(tmp_path):
    (tmp_path / "nb.ipynb").write_bytes(notebook(code("")))
    path = (tmp_path / "nb.ipynb").as_uri()

    async def scenario():
        asks = types.NotebookDocumentClientCapabilities(types.NotebookDocumentSyncClientCapabilities())
        capabilities = types.ClientCapabilities(EVERYTHING.workspace, EVERYTHING.text_document, asks)
        async with editor(tmp_path, capabilities=capabilities) as user:
            assert user.answer.capabilities.notebook_document_sync is not None

            async def shown(name, expected):
                here = lambda: user.shown.get(uri(name))  # noqa: E731
                await user.until(lambda: here() and [each.code for each in here().diagnostics] == expected)
                return here().diagnostics

            async def actions(name, line):
                place = types.Range(types.Position(line, 0), types.Position(line, 90))
                asked = types.CodeActionParams(types.TextDocumentIdentifier(uri(name)), place, types.CodeActionContext([]))
                return await user.client.text_document_code_action_async(asked)

            user.client.notebook_document_did_open(opened({"a": LOAD, "b": TRAIN}, path))
            (found,) = await shown("b", ["SL001"])
            assert (found.range.start, found.range.end) == (types.Position(1, 27), types.Position(1, 29))
            assert [(each.location.uri, each.location.range.start.line) for each in found.related_information] == [(uri("a"), 2)]
            pin, hide = [each for each in await actions("b", 1) if each.kind == types.CodeActionKind.QuickFix]
            (edit,) = pin.edit.document_changes
            assert (edit.text_document.uri, edit.text_document.version) == (uri("a"), 1)
            assert edit.edits[0].new_text == "host = torch.empty(1 << 24, pin_memory=True)"
            assert edit.edits[0].range == types.Range(types.Position(2, 0), types.Position(2, 27))
            assert hide.edit.document_changes[0].edits[0].new_text.endswith("# streamlint: ignore[SL001]")
            assert types.CodeActionKind.QuickFix not in [each.kind for each in await actions("a", 0)]
            at = types.HoverParams(types.TextDocumentIdentifier(uri("b")), types.Position(1, 28))
            assert "unpinned-non-blocking" in (await user.client.text_document_hover_async(at)).contents.value

            user.client.notebook_document_did_change(changed(2, path, structure=inserted(2, "c", READ)))
            await shown("c", ["SL005"])
            everything = [each for each in await actions("c", 1) if each.kind == "source.fixAll.streamlint"]
            (edit,) = everything[0].edit.document_changes
            assert (edit.text_document.uri, [each.new_text for each in edit.edits]) == (uri("c"), [WAIT])
            user.client.notebook_document_did_change(changed(3, path, text_content=[typed("c", 2, READ.replace("print", WAIT + "print"))]))
            await shown("c", [])
            user.client.notebook_document_did_change(changed(4, path, text_content=[typed("b", 2, "x = (")]))
            await shown("b", ["SL000"])
            cells = [types.TextDocumentIdentifier(uri(name)) for name in "abc"]
            user.client.notebook_document_did_close(types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(path), cells))
            await shown("b", [])

    play(scenario)
