f() { 
a && b & c
a | b & 
{ a & }
( a & )
( a & b )
if a & then b & fi
while a; b; do c; d & done
case a in b) x & ;; esac
for i in a; do { b; c; } ; done
for i in a; do ( b; c ) | d ; done
a || { b; c; } && d
x=$(a; b
c &
d)
y=$( ( a ) )
z=$(cat <<E
foo
E
)
w=$( if a; then b; fi; for i in a; do b; done )
v=$( f() { a; } )
u=$( { a; b; } )
t=$(case x in a) b;; esac)
cat <<E && b
foo
E
cat <<E; b
foo
E
cat <<E & b
foo
E
{ cat <<E
foo
E
} 
cat <<E | b <<F
foo
E
bar
F
time
!
! ! a
time time a
f() ( a; )
f() if a; then b; fi
f() { a; } > x < y
coproc { a; b; }
coproc if a; then b; fi
coproc x ( a )
coproc while a; do b; done
if a; then b; c; else d; e; fi
if a; b; then c; elif d; then e; elif f; then g; fi
while a; do b; done < x | c
select i; do a; done
select i in; do a; done
for i in; do a; done
for ((;;)); do a; done
for ((a;b;c)) { a; b; }
for i in a b; { a; b; }
case a in esac
case a in a) ;; b) 
esac
case "$a b" in (a | "b c") a; b;; esac
[[ ! a == b ]]
[[ ( a ) ]]
[[ -n $a && -z $b || a -eq 3 ]]
[[ a =~ (a|b) ]]
[[ a < b ]]
((a)) ; ((a)) && b
( ((a)) )
a 2>&1 1>&2 >&2 <&3 0<&3- 1<a 0<b 1>c 2>d 1>>c 0<>f 1<>f
a <<<x 3<<<"foo bar" 3<<E
foo
E
a >& $x
a >&b
a 2>&$x
a &>x
{ a; } 2>&1 | b
a |& b |& c
{ a; } |& b
f() { a; } |& b
declare x=(a b   c) y
declare -a x=(a "b  c" [1]=d) 
x+=(a b) cmd
a=b c=d
}
declare -f f
