"""Pictures and PDFs are known by their bytes, in both alphabets of base64."""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable

import pytest

from tests.fake_llm.conftest import Gemini
from wedgehog.fake_llm.dialects.images import format_of, is_pdf, pixels_of
from wedgehog.fake_llm.reply import Reply, Text

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (640).to_bytes(4, "big") + (480).to_bytes(4, "big") + b"\x08\xfb\xff\xfe"
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\xfb\xff\xfe"
WEBP = b"RIFF\xff\xfb\xfe\x00WEBPVP8 \xff\xfb"
PDF = b"%PDF-1.4\n%\xff\xfb\xfe\n%%EOF\n"
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "usual": b64encode,
    "for URLs": urlsafe_b64encode,
    "for URLs, without padding": lambda data: urlsafe_b64encode(data).rstrip(b"="),
}


@pytest.fixture(params=ENCODINGS)
def encoded(request: pytest.FixtureRequest) -> Callable[[bytes], str]:
    """Bytes as base64 of each kind."""
    return lambda data: ENCODINGS[request.param](data).decode()


@pytest.mark.parametrize("more", range(4))
@pytest.mark.parametrize(
    ("data", "kind"),
    [(PNG, "image/png"), (JPEG, "image/jpeg"), (WEBP, "image/webp"), (b"GIF89a\xff\xfb", "image/gif"), (PDF, None)],
    ids=str,
)
def test_a_format_is_known_by_its_first_bytes(encoded: Callable[[bytes], str], data: bytes, kind: str, more: int):
    """However many bytes follow."""
    assert format_of(encoded(data + b"\xff" * more)) == kind


def test_the_size_of_a_png_and_the_end_of_a_pdf_are_found(encoded: Callable[[bytes], str]):
    """Of a picture that is no PNG the size is not known."""
    assert (pixels_of(encoded(PNG)), pixels_of(encoded(JPEG)), pixels_of(encoded(PNG[:20]))) == ((640, 480), None, None)
    assert (is_pdf(encoded(PDF)), is_pdf(encoded(PDF[:14])), is_pdf(encoded(PNG))) == (True, False, False)


def test_a_lone_last_digit_is_no_byte():
    """A text that was cut is read as far as it goes."""
    assert format_of("iVBORw0KGgo" + "A" * 2) == "image/png"


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize(("data", "status"), [(JPEG, 200), (b"\xff\xfb\xfe no picture", 400)])
async def test_gemini_reads_both_alphabets(ask, open_llm, name: str, data: bytes, status: int):
    """Its SDKs send base64 for URLs; bytes that are no picture are refused in its words."""
    llm = await open_llm(Reply((Text("A cat."),)))
    part = {"inlineData": {"mimeType": "image/jpeg", "data": ENCODINGS[name](data).decode()}}
    document = Gemini.request(contents=[{"role": "user", "parts": [{"text": "What is it?"}, part]}])
    received = await ask(llm, Gemini, document)
    assert received.status == status
    assert (b"Provided image is not valid." in received.body) == (status == 400)
