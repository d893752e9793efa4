# Loaded before every Perl program. Perl for WASI has no child processes, no dup and no file modes; the sandbox has. A
# request is the opening of a file below /.belljar: the operation, then its arguments in hexadecimal (see
# channel.py). The answer is what is read from it.
package Belljar;
no warnings;

sub _flush { for my $h (\*STDOUT, \*STDERR) { my $o = select $h; my $b = $|; $| = 1; $| = $b; select $o } }

sub _path {
    my $operation = shift;
    return join '/', '/.belljar', $operation, map { my $a = "$_"; utf8::encode($a) if utf8::is_utf8($a); unpack 'H*', $a } @_;
}

sub _environment { return (scalar(keys %ENV), map { "$_=$ENV{$_}" } keys %ENV) }

sub _ask {
    my $f;
    CORE::open($f, '<:raw', _path(@_)) or return;
    local $/;
    my $answer = readline $f;
    CORE::close($f);
    return defined $answer ? $answer : '';
}

sub _run {
    _flush();
    my $answer = _ask('run', _environment(), @_);
    return $? = defined $answer ? $answer : -1;
}

sub _capture {
    _flush();
    my $answer = _ask('capture', _environment(), @_);
    if (!defined $answer) { $? = -1; return }
    ($?, $answer) = split /\n/, $answer, 2;
    return $answer if !wantarray;
    my $end = $/;
    return defined $end ? $answer =~ /(.*?\Q$end\E|.+)/gs : $answer;
}

# A handle that was given as a name, with its package; undef for any other.
sub _name {
    my ($handle, $package) = @_;
    return undef if !defined $handle || ref $handle;
    if (ref \$handle eq 'GLOB') { $handle = "$handle"; $handle =~ s/^\*// }
    return $handle if $handle =~ /::|'/;
    return ($handle =~ /^(?:STDIN|STDOUT|STDERR|ARGV|ENV)$/ ? 'main' : $package) . "::$handle";
}

my %standard = ('main::STDIN' => 0, 'main::STDOUT' => 1, 'main::STDERR' => 2);

sub _standard {
    my ($handle, $name) = @_;
    if (ref $handle eq 'GLOB') { $name = "*$$handle"; $name =~ s/^\*+// }
    return defined $name ? $standard{$name} : undef;
}

sub _number {
    my ($handle, $package) = @_;
    return $handle if !ref $handle && $handle =~ /^\d+$/;
    my $name = _name($handle, $package);
    no strict 'refs';
    return defined $name ? fileno(*{$name}) : fileno($handle);
}

# What an open's mode and words ask for, if it is nothing that WASI has: a pipe or a copy of a descriptor.
sub _special {
    my ($mode, @words) = @_;
    if (@words) {
        return ($1 eq '-|' ? 'reader' : 'writer', $1 eq '-|' ? "<$2" : ">$2", @words) if $mode =~ /^\s*(-\||\|-)\s*(:.*)?$/;
        return ('dup', $1, $words[0]) if $mode =~ /^\s*(\+?[<>]{1,2})&=?\s*$/;
        return;
    }
    return ('dup', $1, $2) if $mode =~ /^\s*(\+?[<>]{1,2})&=?\s*(\w[\w:]*)\s*$/;
    return ('reader', '<', $1) if $mode =~ /^\s*([^<>|].*?)\s*\|\s*$/s;
    return ('writer', '>', $1) if $mode =~ /^\s*\|\s*(.+)$/s;
    return;
}

sub _open {
    my $package = shift;
    my $name = _name($_[0], $package);
    my $standard = _standard($_[0], $name);
    my ($kind, $mode, @words) = @_ > 1 ? _special(@_[1 .. $#_]) : ();
    no strict 'refs';
    if (!defined $kind && !defined $standard) {
        my $handle = defined $name ? \*{$name} : undef;
        if ($handle) {
            return @_ == 1 ? CORE::open($handle) : @_ == 2 ? CORE::open($handle, $_[1]) : CORE::open($handle, $_[1], @_[2 .. $#_]);
        }
        return @_ == 2 ? CORE::open($_[0], $_[1]) : CORE::open($_[0], $_[1], @_[2 .. $#_]);
    }
    _flush();
    my $file;
    if (!defined $kind) {
        (@_ == 2 ? CORE::open($file, $_[1]) : CORE::open($file, $_[1], @_[2 .. $#_])) or return 0;
    }
    else {
        my $path = $kind eq 'dup' ? _path('dup', _number($words[0], $package)) : _path($kind, _environment(), @words);
        if (!defined $standard) {
            return defined $name ? CORE::open(*{$name}, $mode, $path) : CORE::open($_[0], $mode, $path);
        }
        CORE::open($file, $mode, $path) or return 0;
    }
    my $copied = defined _ask('dup2', fileno($file), $standard);
    CORE::close($file);
    my $handle = ('main::STDIN', 'main::STDOUT', 'main::STDERR')[$standard];
    CORE::open(*{$handle}, ($standard ? '>' : '<') . "&=$standard") if !defined fileno(*{$handle});    # it was closed
    return $copied ? 1 : 0;
}

sub _close {
    my $package = shift;
    my $name = @_ ? _name($_[0], $package) : undef;
    no strict 'refs';
    my $done = !@_ ? CORE::close() : defined $name ? CORE::close(*{$name}) : CORE::close($_[0]);
    my $error = $!;
    my $status = _ask('status');
    if (length $status) { $? = $status; $done = 0 if $status; $error = 0 }
    $! = $error;
    return $done;
}

# stat and lstat: a name may be that of an open handle, as a bare word is, or of the last file that was looked at.
sub _stat {
    my ($package, $operation, $what) = @_;
    my $is_path = !ref $what && ref \$what ne 'GLOB';
    return $operation eq 'stat' ? CORE::stat(_) : CORE::lstat(_) if $is_path && $what eq '_';
    if ($is_path && $what =~ /^[A-Za-z_]\w*$/) {
        no strict 'refs';
        my $name = _name($what, $package);
        ($what, $is_path) = (*{$name}, 0) if defined *{$name}{IO};
    }
    if (!wantarray) { return $operation eq 'stat' ? CORE::stat($what) : CORE::lstat($what) }
    my @found = $operation eq 'stat' ? CORE::stat($what) : CORE::lstat($what);
    return @found if !@found || !$is_path;
    my ($mode, $uid, $gid) = split / /, _ask($operation, $what);
    @found[2, 4, 5] = ($mode, $uid, $gid) if defined $gid;
    return @found;
}

# A program that dies exits with the error's number: Linux's, not WASI's.
my ($exits, $running);
my %linux = (
    2 => 13, 6 => 11, 8 => 9, 12 => 10, 20 => 17, 27 => 4, 28 => 22, 31 => 21, 44 => 2, 45 => 8, 48 => 12, 51 => 28, 54 => 20,
    55 => 39, 59 => 25, 63 => 1, 64 => 32, 69 => 30, 70 => 29, 75 => 18,
);
END { $? = $linux{$?} if !$exits && $? == $! + 0 && $linux{$?} }

BEGIN {
    *CORE::GLOBAL::exit = sub (;$) { $exits = 1; my $code = @_ ? $_[0] : 0; _ask('leave', $code & 255) if !$running; CORE::exit($code) };
    *CORE::GLOBAL::system = sub { shift if ref $_[0]; _run(@_) };
    *CORE::GLOBAL::exec = sub { my $s = _run(@_); CORE::exit($s < 0 ? 127 : $s & 127 ? 128 + ($s & 127) : $s >> 8) };
    *CORE::GLOBAL::readpipe = sub (_) { _capture($_[0]) };
    *CORE::GLOBAL::open = sub (*;$@) { unshift @_, scalar caller; goto &_open };
    *CORE::GLOBAL::close = sub (;*) { unshift @_, scalar caller; goto &_close };
    *CORE::GLOBAL::stat = sub (;*) { @_ = (scalar caller, 'stat', @_ ? $_[0] : $_); goto &_stat };
    *CORE::GLOBAL::lstat = sub (;*) { @_ = (scalar caller, 'lstat', @_ ? $_[0] : $_); goto &_stat };
    *CORE::GLOBAL::chmod = sub (@) { my $mode = shift; scalar grep { defined _ask('chmod', $mode, $_) } @_ };
    *CORE::GLOBAL::umask = sub (;$) { _ask('umask', grep { defined } @_) };
    *CORE::GLOBAL::kill = sub (@) { my $n = shift; scalar grep { defined _ask('kill', $n, $_) } @_ };
    *CORE::GLOBAL::getppid = sub () { (split / /, _ask('ids'))[1] };
    *CORE::GLOBAL::fork = sub () { die "fork: not possible in WebAssembly; use system, backticks or open with a pipe\n" };
    *CORE::GLOBAL::flock = sub (*$) { 1 };    # nobody else holds a lock that Perl could see
}
INIT { $running = 1; ($$) = split / /, _ask('ids') }    # it tells the host, too, that the program was compiled
@INC = ((grep { $_ ne '/usr/lib/belljar/perl' } @INC), '/usr/lib/belljar/perl');
$^X = '/usr/bin/perl';    # it knows only the name that it was called by
$! = 0;    # of looking for modules; a program that dies exits with it
1;
