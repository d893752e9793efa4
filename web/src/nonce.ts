// The policy of this page lets in only those <style> elements that carry its nonce, and no style attributes. Libraries
// that make some (the terminal's colours) are helped here; scripts may style what they like by other means anyway.

export const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";

const make = document.createElement.bind(document);

document.createElement = ((name: string, options?: ElementCreationOptions) => {
  const made = make(name, options);
  if (made instanceof HTMLStyleElement) made.nonce = nonce;
  return made;
}) as typeof document.createElement;

const setAttribute = Element.prototype.setAttribute;

Element.prototype.setAttribute = function (name: string, value: string) {
  if (name === "style" && this instanceof HTMLElement) this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
