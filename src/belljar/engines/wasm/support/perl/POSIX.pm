# What programs use most of POSIX, in Perl: this Perl carries no compiled module for it.
package POSIX;
use strict;
use Exporter ();
our $VERSION = '2.0';
my %constants = (
    INT_MAX => 2147483647, INT_MIN => -2147483648, UINT_MAX => 4294967295, LONG_MAX => 9223372036854775807,
    LONG_MIN => -9223372036854775807 - 1, DBL_MAX => 1.7976931348623157e308, DBL_MIN => 2.2250738585072014e-308,
    DBL_EPSILON => 2.220446049250313e-16, FLT_MAX => 3.40282346638529e+38, CHAR_BIT => 8, PATH_MAX => 4096, RAND_MAX => 2147483647,
    EXIT_SUCCESS => 0, EXIT_FAILURE => 1, WNOHANG => 1, WUNTRACED => 2, BUFSIZ => 8192, EOF => -1,
    SIGHUP => 1, SIGINT => 2, SIGQUIT => 3, SIGKILL => 9, SIGUSR1 => 10, SIGUSR2 => 12, SIGPIPE => 13, SIGALRM => 14, SIGTERM => 15,
    SIGCHLD => 17, SEEK_SET => 0, SEEK_CUR => 1, SEEK_END => 2, LC_ALL => 6, LC_NUMERIC => 1, LC_TIME => 2, LC_CTYPE => 0,
);
for my $name (keys %constants) { my $value = $constants{$name}; no strict 'refs'; *$name = sub () { $value } }
my @days = qw(Sunday Monday Tuesday Wednesday Thursday Friday Saturday);
my @months = qw(January February March April May June July August September October November December);

sub floor { my $i = int $_[0]; $i > $_[0] ? $i - 1 : $i }
sub ceil { my $i = int $_[0]; $i < $_[0] ? $i + 1 : $i }
sub round { $_[0] < 0 ? ceil($_[0] - 0.5) : floor($_[0] + 0.5) }
sub trunc { int $_[0] }
sub fmod { my ($x, $y) = @_; $x - $y * int($x / $y) }
sub pow { $_[0]**$_[1] }
sub fabs { abs $_[0] }
sub fmax { $_[0] > $_[1] ? $_[0] : $_[1] }
sub fmin { $_[0] < $_[1] ? $_[0] : $_[1] }
sub log10 { log($_[0]) / log(10) }
sub log2 { log($_[0]) / log(2) }
sub tan { sin($_[0]) / cos($_[0]) }
sub atan { atan2($_[0], 1) }
sub asin { atan2($_[0], sqrt(1 - $_[0] * $_[0])) }
sub acos { atan2(sqrt(1 - $_[0] * $_[0]), $_[0]) }
sub sinh { (exp($_[0]) - exp(-$_[0])) / 2 }
sub cosh { (exp($_[0]) + exp(-$_[0])) / 2 }
sub tanh { my $e = exp(2 * $_[0]); ($e - 1) / ($e + 1) }
sub strtol {
    my ($text, $base) = @_;
    $base ||= 10;
    $text =~ s/^\s+//;
    my $sign = $text =~ s/^([+-])// && $1 eq '-' ? -1 : 1;
    $text =~ s/^0x//i if $base == 16;
    my $value = 0;
    while ($text =~ /^([0-9a-zA-Z])/) {
        my $digit = index '0123456789abcdefghijklmnopqrstuvwxyz', lc $1;
        last if $digit >= $base;
        $value = $value * $base + $digit;
        substr $text, 0, 1, '';
    }
    return wantarray ? ($sign * $value, length $text) : $sign * $value;
}
sub strtod { my ($text) = @_; $text =~ s/^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)// ? (wantarray ? ($1 + 0, length $text) : $1 + 0) : 0 }
sub isatty { my $h = shift; -t (ref $h || ref \$h eq 'GLOB' ? $h : \*STDOUT) }
sub getpid { $$ }
sub getcwd { require Cwd; Cwd::getcwd() }
sub strerror { local $! = $_[0]; "$!" }
sub errno { $! + 0 }
sub toupper { uc $_[0] }
sub tolower { lc $_[0] }
sub setlocale { 'C' }
sub localeconv { { decimal_point => '.' } }
sub uname { ('Linux', do { my $h = `hostname`; chomp $h; $h }, '6.1.0', '#1', 'wasm32') }
sub _exit { $| = 1; CORE::exit($_[0]) }
sub WIFEXITED { ($_[0] & 127) == 0 }
sub WEXITSTATUS { $_[0] >> 8 & 255 }
sub WIFSIGNALED { ($_[0] & 127) != 0 }
sub WTERMSIG { $_[0] & 127 }
sub mktime { require Time::Local; _from_parts(\&Time::Local::timelocal, @_[0 .. 5]) }
sub _from_parts {
    my ($make, $sec, $min, $hour, $day, $month, $year) = @_;
    $year += floor($month / 12);
    $month = $month % 12;
    return $make->(0, 0, 0, 1, $month, $year + 1900) + ($day - 1) * 86400 + $hour * 3600 + $min * 60 + $sec;
}

sub strftime {
    my ($format, @parts) = @_;
    require Time::Local;
    my $time = _from_parts(\&Time::Local::timegm, @parts);
    my ($sec, $min, $hour, $day, $month, $year, $wday, $yday) = gmtime $time;
    $year += 1900;
    my $week = sub { int(($yday + 7 - ($wday - $_[0]) % 7) / 7) };
    my ($iso_year, $iso_week) = do {
        my $thursday = $time + (3 - ($wday + 6) % 7) * 86400;
        my @t = gmtime $thursday;
        ($t[5] + 1900, 1 + int($t[7] / 7));
    };
    my %value = (
        a => substr($days[$wday], 0, 3), A => $days[$wday], b => substr($months[$month], 0, 3), B => $months[$month],
        h => substr($months[$month], 0, 3), d => sprintf('%02d', $day), e => sprintf('%2d', $day), H => sprintf('%02d', $hour),
        I => sprintf('%02d', $hour % 12 || 12), j => sprintf('%03d', $yday + 1), k => sprintf('%2d', $hour), l => sprintf('%2d', $hour % 12 || 12),
        m => sprintf('%02d', $month + 1), M => sprintf('%02d', $min), n => "\n", p => $hour < 12 ? 'AM' : 'PM', P => $hour < 12 ? 'am' : 'pm',
        S => sprintf('%02d', $sec), t => "\t", u => $wday || 7, w => $wday, y => sprintf('%02d', $year % 100), Y => $year,
        C => sprintf('%02d', $year / 100), G => $iso_year, g => sprintf('%02d', $iso_year % 100), V => sprintf('%02d', $iso_week),
        U => sprintf('%02d', $week->(0)), W => sprintf('%02d', $week->(1)), z => '+0000', Z => 'UTC', s => $time, '%' => '%',
    );
    my %long = (
        c => '%a %b %e %H:%M:%S %Y', D => '%m/%d/%y', F => '%Y-%m-%d', r => '%I:%M:%S %p', R => '%H:%M', T => '%H:%M:%S',
        x => '%m/%d/%y', X => '%H:%M:%S',
    );
    $format =~ s/%([cDFrRTxX])/$long{$1}/g;
    $format =~ s/%[EO_^#0-]?([a-zA-Z%])/exists $value{$1} ? $value{$1} : "%$1"/ge;
    return $format;
}

our @EXPORT = (keys %constants, grep { defined &$_ && !/^_|^(?:import|round|trunc|fmax|fmin|log2)$/ } keys %POSIX::);
our @EXPORT_OK = qw(round trunc fmax fmin log2 _exit);
our %EXPORT_TAGS = map { $_ => \@EXPORT }
    qw(limits_h float_h math_h time_h sys_wait_h signal_h stdlib_h string_h errno_h fcntl_h unistd_h locale_h ctype_h stdio_h);

sub import { my $class = shift; local $Exporter::ExportLevel = 1; Exporter::import($class, @_) }
1;
