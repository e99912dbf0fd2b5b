# perl notify-socket.pl PROGRAM [ARGUMENTS]: becomes the program, with systemd's socket (NOTIFY_SOCKET) open as descriptor NOTIFY_FD.
# Node cannot open datagram sockets in the file system, but what it writes to such a descriptor is a datagram, sent by its own process.
use strict;
use warnings;
use Socket qw(AF_UNIX SOCK_DGRAM SOCK_NONBLOCK pack_sockaddr_un);

my $name = $ENV{NOTIFY_SOCKET};
# An abstract address (unix(7)).
( my $path = $name ) =~ s/^@/\0/;
# Descriptors up to this one stay open in the program.
$^F = 255;
# Where systemd does not read, the service goes on.
my $socket;
socket( $socket, AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0 )
  && connect( $socket, pack_sockaddr_un($path) )
  or die "larder: the socket $name of the service manager: $!\n";
$ENV{NOTIFY_FD} = fileno $socket;
exec {$ARGV[0]} @ARGV or die "larder: $ARGV[0]: $!\n";
