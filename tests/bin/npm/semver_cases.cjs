// Prints, as JSON lines, ranges and versions made up from a seed, with what npm's own semver says of them.
// Usage: node semver_cases.cjs SEMVER-MODULE SEED COUNT
const semver = require(process.argv[2]);
let state = Number(process.argv[3]);
const below = (n) => { state = (state * 1103515245 + 12345) & 0x7fffffff; return (state >> 8) % n };
const pick = (list) => list[below(list.length)];
const number = () => pick(['0', '1', '2', '3', '10', 'x', 'X', '*', '01']);
const digit = () => pick(['0', '0', '1', '1', '2', '3', '10']);
const pre = () => pick(['', '', '', '', '-alpha', '-alpha.1', '-0', '-beta.2', 'beta', '-rc.1.x', '-1a', '+b1', '-a+b.c']);
const version = () => pick(['', '', '', 'v', '=', '= v']) + digit() + '.' + digit() + '.' + digit() + pre();
const part = () => pick([() => number(), () => number() + '.' + number(), () => number() + '.' + number() + '.' + number() + pre(), version, version])();
const bare = () => part().replace(/= *v?|=/, '');
const comparator = () => pick(['', '', '^', '~', '~>', '>=', '<=', '<', '>', '=', '^ ', '~ ', '>= ', '< ']) + part();
const odd = () => pick(['', '*', 'latest', 'x', '>', 'next 1', '1 - 2 3', '>01.02.03', 'foo || 1']);
const set = () => pick([comparator, comparator, () => comparator() + ' ' + comparator(), () => bare() + ' - ' + bare(), odd])();
const range = () => pick([set, set, () => set() + pick([' || ', '||', '|| ']) + set(), () => set() + '||' + set() + ' || ' + set()])();
for (let i = 0; i < Number(process.argv[4]); i++) {
  const wanted = range(), versions = [version(), version(), version(), version()];
  console.log(JSON.stringify({ wanted, valid: semver.validRange(wanted, true) !== null,
    versions: versions.map((v) => [v, semver.valid(v, true), semver.satisfies(v, wanted, true)]) }));
}
