from lxml import etree, html

tree = etree.fromstring("<root><a id='1'>x</a><a id='2'>y</a><b><a id='3'/></b></root>")
print(tree.xpath("//a/@id"), tree.xpath("count(//a)"), tree.xpath("string(//a[@id=2])"))
print(etree.tostring(tree.find("b")), [e.tag for e in tree.iter()])
page = html.fromstring("<html><body><p class='t'>Hi <b>there</b></p><a href='/x'>l</a></body></html>")
print(page.xpath("//p")[0].text_content(), [link[2] for link in page.iterlinks()])
