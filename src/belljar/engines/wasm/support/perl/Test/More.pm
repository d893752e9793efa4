# The functions of Test::More that tests use most: this Perl comes without it.
package Test::More;
use strict;
use Exporter ();
our $VERSION = '1.3';
our @EXPORT = qw(plan ok is isnt like unlike cmp_ok is_deeply pass fail diag note explain skip can_ok isa_ok use_ok require_ok new_ok
    done_testing subtest BAIL_OUT eq_array eq_hash $TODO);
our $TODO;
my ($count, $failed, $planned, $skipped, $indent) = (0, 0, undef, 0, '');

sub import { my $class = shift; plan(@_) if @_; local $Exporter::ExportLevel = 1; Exporter::import($class) }
sub plan {
    my ($what, $value) = @_;
    if ($what eq 'skip_all') { print "1..0 # SKIP $value\n"; exit 0 }
    $planned = $value;
    print "${indent}1..$value\n";
}
sub ok ($;$) {
    my ($good, $name) = @_;
    $count++;
    my $todo = do { no strict 'refs'; ${"main::TODO"} };
    print $indent, $good ? '' : 'not ', "ok $count", defined $name && length $name ? " - $name" : '', defined $todo ? " # TODO $todo" : '', "\n";
    if (!$good && !defined $todo) {
        $failed++;
        my $level = 0;
        $level++ while (caller $level)[0] eq __PACKAGE__;
        my (undef, $file, $line) = caller $level;
        diag(defined $name && length $name ? "  Failed test '$name'\n  at $file line $line." : "  Failed test at $file line $line.");
    }
    return $good ? 1 : 0;
}
sub _show { defined $_[0] ? "'$_[0]'" : 'undef' }
sub is ($$;$) {
    my ($got, $expected, $name) = @_;
    my $good = defined $got && defined $expected ? $got eq $expected : !defined $got && !defined $expected;
    ok($good, $name) or diag('         got: ' . _show($got) . "\n    expected: " . _show($expected));
    return $good;
}
sub isnt ($$;$) { my $g = !(defined $_[0] && defined $_[1] ? $_[0] eq $_[1] : !defined $_[0] && !defined $_[1]); ok($g, $_[2]) }
sub like ($$;$) { my $g = defined $_[0] && $_[0] =~ $_[1]; ok($g, $_[2]) or diag('                  ' . _show($_[0]) . "\n    doesn't match '$_[1]'"); $g }
sub unlike ($$;$) { my $g = !defined $_[0] || $_[0] !~ $_[1]; ok($g, $_[2]) or diag('                  ' . _show($_[0]) . "\n          matches '$_[1]'"); $g }
sub cmp_ok ($$$;$) {
    my ($got, $operator, $expected, $name) = @_;
    my $good = eval "\$got $operator \$expected";
    ok($good, $name) or diag('    ' . _show($got) . "\n        $operator\n    " . _show($expected));
    return $good;
}
sub pass (;$) { ok(1, $_[0]) }
sub fail (;$) { ok(0, $_[0]) }
sub diag { my $text = join '', map { defined $_ ? $_ : 'undef' } @_; $text =~ s/^/$indent# /gm; $text =~ s/\n?\z/\n/; print STDERR $text; 0 }
sub note { my $text = join '', @_; $text =~ s/^/$indent# /gm; $text =~ s/\n?\z/\n/; print $text; 0 }
sub explain { require Data::Dumper; local ($Data::Dumper::Indent, $Data::Dumper::Sortkeys, $Data::Dumper::Terse) = (1, 1, 1); map { ref $_ ? Data::Dumper::Dumper($_) : $_ } @_ }
sub _equal {
    my ($x, $y) = @_;
    return !defined $x && !defined $y if !defined $x || !defined $y;
    return !ref $y && $x eq $y if !ref $x;
    return 0 if ref $x ne ref $y;
    require Scalar::Util;
    my $kind = Scalar::Util::reftype($x);
    if ($kind eq 'ARRAY') { return 0 if @$x != @$y; _equal($x->[$_], $y->[$_]) || return 0 for 0 .. $#$x; return 1 }
    if ($kind eq 'HASH') { return 0 if keys %$x != keys %$y; exists $y->{$_} && _equal($x->{$_}, $y->{$_}) || return 0 for keys %$x; return 1 }
    return _equal($$x, $$y) if $kind eq 'SCALAR' || $kind eq 'REF';
    return $x == $y;
}
sub eq_array { _equal(@_[0, 1]) }
sub eq_hash { _equal(@_[0, 1]) }
sub is_deeply { my ($got, $expected, $name) = @_; my $g = _equal($got, $expected); ok($g, $name) or diag("    Structures begin differing:\n", explain($got), explain($expected)); $g }
sub can_ok ($@) { my ($class, @methods) = @_; my @lacking = grep { !$class->can($_) } @methods; ok(!@lacking, (ref $class || $class) . "->can(...)") }
sub isa_ok ($;$$) { my ($thing, $class, $name) = @_; require Scalar::Util; my $g = Scalar::Util::blessed($thing) || !ref $thing ? eval { $thing->isa($class) } : Scalar::Util::reftype($thing) eq $class; ok($g, ($name || 'An object of class \'' . (ref $thing || $thing) . "'") . " isa '$class'") }
sub new_ok { my ($class, $args) = @_; my $o = eval { $class->new(@{ $args || [] }) }; isa_ok($o, $class); $o }
sub use_ok ($;@) { my ($module, @words) = @_; my $package = caller; my $g = eval "package $package; use $module \@words; 1"; ok($g, "use $module;") or diag("    $@") }
sub require_ok ($) { my $g = eval "require $_[0]; 1"; ok($g, "require $_[0];") or diag("    $@") }
sub skip { my ($why, $many) = @_; print "${indent}ok ", ++$count, " # skip $why\n" for 1 .. ($many || 1); no warnings 'exiting'; last SKIP }
sub subtest {
    my ($name, $code, @words) = @_;
    my @outer = ($count, $failed, $planned, $indent);
    print "$indent# Subtest: $name\n";
    ($count, $failed, $planned, $indent) = (0, 0, undef, "$indent    ");
    $code->(@words);
    print "${indent}1..$count\n" if !defined $planned;
    my $good = !$failed && (!defined $planned || $planned == $count);
    ($count, $failed, $planned, $indent) = @outer;
    return ok($good, $name);
}
sub done_testing { $planned = $count; print "${indent}1..$count\n" }
sub BAIL_OUT { print "Bail out!  $_[0]\n"; exit 255 }

END {
    if ($count || defined $planned) {
        diag("Looks like you planned $planned test" . ($planned == 1 ? '' : 's') . " but ran $count.") if defined $planned && $planned != $count;
        diag("Looks like you failed $failed test" . ($failed == 1 ? '' : 's') . " of $count.") if $failed;
        $? ||= $failed > 254 ? 254 : $failed || (defined $planned && $planned != $count ? 255 : 0);
    }
}
1;
