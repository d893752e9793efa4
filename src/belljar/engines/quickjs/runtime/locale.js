// What people use of locales without saying so: texts in the order of a dictionary, numbers with their thousands apart. The
// engine has no Intl; this is the root of all locales, and American numbers, as Node has them when nothing is asked for.
(function (uncurry) {
  'use strict';

  const define = (object, name, value) => Reflect.defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  const charCodeAt = uncurry(String.prototype.charCodeAt), normalize = uncurry(String.prototype.normalize);
  const slice = uncurry(String.prototype.slice), toLowerCase = uncurry(String.prototype.toLowerCase);
  const toFixed = uncurry(Number.prototype.toFixed), numberValue = uncurry(Number.prototype.valueOf);
  const bigValue = uncurry(BigInt.prototype.valueOf), bigText = uncurry(BigInt.prototype.toString);
  const test = uncurry(RegExp.prototype.test);

  // ASCII as dictionaries have it (the Unicode collation's root): spaces, marks, digits, letters; the rest by its number.
  const ORDER = '\t\n\v\f\r _-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$0123456789';
  const ranks = new Uint16Array(128);
  for (let i = 0; i < ORDER.length; i++) ranks[ORDER.charCodeAt(i)] = i + 1;
  for (let i = 0; i < 26; i++) ranks[97 + i] = ranks[65 + i] = 100 + i;
  const rank = (code) => (code < 128 ? ranks[code] : 1000 + code);
  const isMark = (code) => code >= 0x300 && code < 0x370;
  const isDigit = (code) => code >= 48 && code <= 57;

  // Letters first; if those are the same, their accents; then their case, small before large.
  function compare(a, b, { numeric, sensitivity }) {
    let accents = 0, cases = 0, i = 0, j = 0;
    for (;;) {
      let leftMarks = '', rightMarks = '';
      for (; isMark(charCodeAt(a, i)); i++) leftMarks += a[i];
      for (; isMark(charCodeAt(b, j)); j++) rightMarks += b[j];
      if (leftMarks !== rightMarks && accents === 0) accents = leftMarks < rightMarks ? -1 : 1;
      if (numeric && isDigit(charCodeAt(a, i)) && isDigit(charCodeAt(b, j))) {
        const ends = [];
        for (const { 0: text, 1: start } of [[a, i], [b, j]]) {
          let first = start, end;
          while (charCodeAt(text, first) === 48) first++;
          for (end = first; isDigit(charCodeAt(text, end));) end++;
          ends.push([slice(text, first, end), end]);
        }
        const { 0: { 0: left, 1: leftEnd }, 1: { 0: right, 1: rightEnd } } = ends;
        if (left.length !== right.length) return left.length < right.length ? -1 : 1;
        if (left !== right) return left < right ? -1 : 1;
        i = leftEnd;
        j = rightEnd;
        continue;
      }
      if (i >= a.length || j >= b.length) break;
      const x = charCodeAt(a, i++), y = charCodeAt(b, j++);
      if (x === y) continue;
      const lower = toLowerCase(a[i - 1]) === toLowerCase(b[j - 1]);
      if (!lower) return rank(x) < rank(y) ? -1 : 1;
      if (cases === 0) cases = toLowerCase(a[i - 1]) === a[i - 1] ? -1 : 1;
    }
    if (i < a.length || j < b.length) return i < a.length ? 1 : -1;
    if (accents !== 0 && (sensitivity === 'accent' || sensitivity === 'variant')) return accents;
    return sensitivity === 'case' || sensitivity === 'variant' ? cases : 0;
  }

  const NUMERIC = /-u(?:-\w+)*-kn(?!-false)/;
  define(String.prototype, 'localeCompare', { localeCompare(other, locales, options) {
    const { numeric = test(NUMERIC, `${locales}`), sensitivity = 'variant' } = options ?? {};
    return compare(normalize(`${this}`, 'NFD'), normalize(`${other}`, 'NFD'), { numeric, sensitivity });
  } }.localeCompare);

  // The shortest digits that mean the number; large ones with all their zeros.
  function shortest(value) {
    const text = `${value}`, found = /^(-?)(\d)(?:\.(\d+))?e\+(\d+)$/.exec(text);
    return found === null ? text : found[1] + `${found[2]}${found[3] ?? ''}`.padEnd(Number(found[4]) + 1, '0');
  }

  // Those digits with so many after the point, a half away from zero.
  function round(text, most) {
    const sign = text[0] === '-' ? '-' : '', { 0: whole, 1: part } = text.slice(sign.length).split('.');
    const up = part[most] >= '5' ? 1n : 0n;
    const digits = bigText(BigInt(whole + part.slice(0, most)) + up).padStart(most + 1, '0');
    return sign + (most === 0 ? digits : `${digits.slice(0, -most)}.${digits.slice(-most)}`);
  }

  const UNDERSTOOD = { __proto__: null, minimumFractionDigits: true, maximumFractionDigits: true, useGrouping: true, style: 'decimal' };
  function format(text, options) {
    for (const name of Object.keys(options)) {
      const known = UNDERSTOOD[name];
      if (options[name] !== undefined && known !== true && known !== options[name]) {
        throw new RangeError(`toLocaleString: ${name} needs Intl, which QuickJS has not`);
      }
    }
    const { useGrouping = true } = options;
    const at = text.indexOf('.'), whole = at < 0 ? text : text.slice(0, at);
    return (useGrouping ? whole.replace(/\B(?=(?:\d{3})+$)/g, ',') : whole) + (at < 0 ? '' : text.slice(at));
  }

  define(Number.prototype, 'toLocaleString', { toLocaleString(_locales, options = {}) {
    const value = numberValue(this);
    if (value !== value) return 'NaN';
    if (value === Infinity || value === -Infinity) return value > 0 ? '∞' : '-∞';
    const { minimumFractionDigits: least = 0, maximumFractionDigits: most = Math.max(least, 3) } = options ?? {};
    let text = shortest(value);
    if (text.includes('e-')) text = toFixed(value, most);
    else if (text.includes('.') && text.length - text.indexOf('.') - 1 > most) text = round(text, most);
    else if (least > 0 && !text.includes('e')) text += `${text.includes('.') ? '' : '.'}${'0'.repeat(least)}`;
    if (text.includes('.')) {
      let end = text.length;
      while (end > text.indexOf('.') + 1 + least && text[end - 1] === '0') end--;
      text = text.slice(0, text[end - 1] === '.' ? end - 1 : end);
    }
    return format(Object.is(value, -0) ? `-${text}` : text, options ?? {});
  } }.toLocaleString);
  define(BigInt.prototype, 'toLocaleString', { toLocaleString(_locales, options) { return format(bigText(bigValue(this)), options ?? {}); } }.toLocaleString);
})
