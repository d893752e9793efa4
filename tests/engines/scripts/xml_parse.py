import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

root = ET.fromstring("""<shop xmlns:x="urn:x"><item id="1" x:kind="a">Pen &amp; ink<price>2.5</price></item><item id="2"/></shop>""")
for item in root.iter("item"):
    print(item.attrib, item.text, item.findtext("price", "none"))
ET.SubElement(root, "item", id="3").text = "<new>"
ET.indent(root)
print(ET.tostring(root, encoding="unicode"))
print(root.find("./item[@id='2']").get("id"), escape("a < b & c"))
try:
    ET.fromstring("<a><b></a>")
except ET.ParseError as error:
    print(error)
