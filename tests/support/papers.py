"""Small, valid documents: a PDF by hand, and Office files as the ZIP archives of XML that they are."""

import zlib
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

_OFFICE = "http://schemas.openxmlformats.org"
_DOCUMENT = "application/vnd.openxmlformats-officedocument"


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, text in enumerate(pages):
        drawn = zlib.compress(b"BT /F1 12 Tf 72 720 Td (" + text.encode("cp1252") + b") Tj ET")
        more = "/MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /Contents {5 + 2 * number} 0 R {more} >>".encode())
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(drawn), drawn))
    made, places = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start, count = len(made), len(objects) + 1
    made += b"xref\n0 %d\n0000000000 65535 f \n%b" % (count, table)
    made += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, start)
    return bytes(made)


def docx(*paragraphs: str) -> bytes:
    """A Word document."""
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    document = f'<w:document xmlns:w="{_OFFICE}/wordprocessingml/2006/main"><w:body>{body}</w:body></w:document>'
    return _office({"word/document.xml": (document, "wordprocessingml.document.main")})


def xlsx(*rows: tuple[str | int, ...]) -> bytes:
    """An Excel workbook with one sheet."""
    main = f'xmlns="{_OFFICE}/spreadsheetml/2006/main" xmlns:r="{_OFFICE}/officeDocument/2006/relationships"'
    cells = "".join(
        f'<row r="{row}">{"".join(_cell(f"{chr(65 + column)}{row}", each) for column, each in enumerate(values))}</row>'
        for row, values in enumerate(rows, 1)
    )
    book = f'<workbook {main}><sheets><sheet name="Stock" sheetId="1" r:id="rId1"/></sheets></workbook>'
    sheet = f"<worksheet {main}><sheetData>{cells}</sheetData></worksheet>"
    relations = {"rId1": ("worksheet", "worksheets/sheet1.xml")}
    return _office(
        {
            "xl/workbook.xml": (book, "spreadsheetml.sheet.main"),
            "xl/worksheets/sheet1.xml": (sheet, "spreadsheetml.worksheet"),
        },
        {"xl/_rels/workbook.xml.rels": _relations(relations)},
    )


def _cell(place: str, value: str | int) -> str:
    if isinstance(value, int):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def _relations(named: dict[str, tuple[str, str]]) -> str:
    kind = f"{_OFFICE}/officeDocument/2006/relationships"
    inner = "".join(
        f'<Relationship Id="{name}" Type="{kind}/{what}" Target="{target}"/>' for name, (what, target) in named.items()
    )
    return f'<Relationships xmlns="{_OFFICE}/package/2006/relationships">{inner}</Relationships>'


def _office(parts: dict[str, tuple[str, str]], more: dict[str, str] | None = None) -> bytes:
    kinds = "".join(
        f'<Override PartName="/{path}" ContentType="{_DOCUMENT}.{kind}+xml"/>' for path, (_, kind) in parts.items()
    )
    rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_OFFICE}/package/2006/content-types">{rels}{kinds}</Types>',
        "_rels/.rels": _relations({"rId1": ("officeDocument", next(iter(parts)))}),
        **{path: text for path, (text, _) in parts.items()},
        **(more or {}),
    }
    made = BytesIO()
    with ZipFile(made, "w", ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(path, f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n{text}')
    return made.getvalue()
