"""C++ and CUDA source to ``program.Module``, through tree-sitter."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from streamlint.frontends import UnreadableSource, parser_of
from streamlint.frontends.cuda_annotations import without_annotations
from streamlint.frontends.cuda_definitions import DefinitionReader
from streamlint.frontends.cuda_macros import Definitions, Expander
from streamlint.frontends.cuda_pieces import Piece, Pieces
from streamlint.frontends.cuda_positions import Places
from streamlint.frontends.cuda_preprocess import Preprocessed, comments_of, preprocess
from streamlint.frontends.declarations import attach
from streamlint.program import Defined, Module
from streamlint.support.recursion import deeper

if TYPE_CHECKING:
    from tree_sitter import Parser

    from streamlint.frontends.cuda_headers import Headers


_DEPTH = 6000


def lower(path: str, text: str, headers: Headers | None = None, architecture: int = 0) -> Module:
    """Lower one C++ or CUDA file, with macros of the known headers. What could not be read is noted in ``problems``.

    With an ``architecture`` (900) the bodies of kernels and of functions of the device are read as well, as they are compiled for it.
    """
    if "\0" in text:
        raise UnreadableSource(1, 1, "this is not text")
    parser = _parser()
    if text.startswith("\ufeff"):
        source = preprocess(text.replace("\ufeff", " ", 1), architecture)
    else:
        source = headers.read(path, text) if headers and not architecture else preprocess(text, architecture)
    pieces = _expanded(source, headers.definitions(path, source) if headers else source.definitions)
    code, device_lambdas = without_annotations(pieces.text, source.mask if pieces.text == source.text else "", bool(architecture))
    # One byte a code point, so that the parser's offsets are ours; only strings hold other characters.
    encoded = code.encode("ascii", "replace")
    macros = {name: macro.body for _, name, macro in source.definitions if macro is not None}
    module = Module(path, "cuda", [], text, includes=tuple(source.includes), macros=macros)
    module.included_at = tuple(source.included_at)
    module.defined = tuple(Defined(name, at, above) for at, name, above in source.defined)
    tree = parser.parse(encoded)
    with deeper(_DEPTH):  # long chains of ``else if`` are nested in the tree
        reader = DefinitionReader(code, Places(text, pieces), module, device_lambdas)
        reader.of_device = bool(architecture)
        reader.is_open = source.mask.count("{") > source.mask.count("}")
        reader.read(tree.root_node)
        if "streamlint:" in text:
            attach(module, comments_of(text), reader.declarations, source.text)
        reader.join()
    return module


def _expanded(source: Preprocessed, definitions: Definitions) -> Pieces:
    try:
        return Expander(source, definitions).run()
    except RecursionError:
        return Pieces([Piece(source.text, 0, None)])


@cache
def _parser() -> Parser:
    with parser_of("tree-sitter-cuda"):
        import tree_sitter_cuda  # optional: the parser of C++

        grammar = tree_sitter_cuda.language()
    with parser_of("tree-sitter"):
        import tree_sitter  # optional: the same

        return tree_sitter.Parser(tree_sitter.Language(grammar))
