# What Perl for WASI carries no compiled module for: copies of data, without its files' format.
package Storable;
use strict;
use Exporter 'import';
our $VERSION = '3.0';
our @EXPORT = qw(store retrieve);
our @EXPORT_OK = qw(dclone freeze thaw nstore nfreeze store_fd retrieve_fd);

sub dclone {
    my ($data, $seen) = @_;
    $seen ||= {};
    my $kind = ref $data or return $data;
    return $seen->{$data} if $seen->{$data};
    require Scalar::Util;
    my $class = Scalar::Util::blessed($data);
    $kind = Scalar::Util::reftype($data);
    my $copy = $kind eq 'ARRAY' ? [] : $kind eq 'HASH' ? {} : $kind eq 'CODE' ? die("Can't store CODE items\n") : \my $value;
    $seen->{$data} = $copy;
    if ($kind eq 'ARRAY') { @$copy = map { dclone($_, $seen) } @$data }
    elsif ($kind eq 'HASH') { $copy->{$_} = dclone($data->{$_}, $seen) for keys %$data }
    else { $$copy = dclone($$data, $seen) }
    return defined $class ? bless $copy, $class : $copy;
}

for my $name (qw(store retrieve freeze thaw nstore nfreeze store_fd retrieve_fd)) {
    no strict 'refs';
    *$name = sub { die "Storable::$name is not in this Perl: write the data as JSON (JSON::PP) or Data::Dumper\n" };
}
1;
