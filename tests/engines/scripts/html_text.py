import html
from html.parser import HTMLParser
from urllib.parse import parse_qs, quote, unquote_plus, urlencode, urljoin, urlsplit


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.depth = [], 0

    def handle_starttag(self, tag, attrs):
        self.depth += 1
        if tag == "a":
            self.found.append(dict(attrs).get("href"))

    def handle_data(self, data):
        if data.strip():
            print("text:", data.strip())


parser = Links()
parser.feed('<p>Hello <a href="/a?x=1&amp;y=2">there</a> <b>&eacute;t&eacute;</b><a href="b.html">b</a></p>')
print([urljoin("https://example.com/dir/", link) for link in parser.found])
print(html.escape('<"&>'), html.unescape("&lt;&#39;&hearts;"))
print(urlsplit("https://me:pw@host.example:8080/p/a?q=1#frag").port, parse_qs("a=1&a=2&b="), urlencode({"q": "a b&c", "é": 1}))
print(quote("a/b c"), unquote_plus("a%2Fb+c"))
