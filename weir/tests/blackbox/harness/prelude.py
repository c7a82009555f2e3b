# What the scripts of the tests share. The first argument is the URI of the export.
import errno, nbd, sys

URI = sys.argv[1]

def connect(lenient=True, structured=True, allocation=True):
    """A connection that sends whatever it is told to, unless `lenient` is false."""
    h = nbd.NBD()
    h.set_request_structured_replies(structured)
    if structured and allocation:
        h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    h.connect_uri(URI)
    if lenient:
        h.set_strict_mode(0)
    return h

def fails(wanted, request):
    """The server refuses the request with this error, and answers the next one."""
    try:
        request()
    except nbd.Error as error:
        assert error.errnum == wanted, f"{error.errno} where {errno.errorcode[wanted]} is expected: {error}"
        return
    raise AssertionError(f"no error where {errno.errorcode[wanted]} is expected")
