/** The network address in a URL, in the form that sockets, TLS and SSH need. */
export interface NetworkAddress {
  /** With its colon: `mqtts:`. */
  protocol: string
  /** Without the brackets that URLs put around an IPv6 address. */
  host: string
  port: number
  /** The name that the server's certificate must have; undefined if the host is an address (TLS forbids it as a server name). */
  servername: string | undefined
  /** Decoded; empty if the URL has none. */
  username: string
  password: string
}

/** A host without the brackets that URLs put around an IPv6 address: `[::1]` becomes `::1`. */
export const bareHost = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/** A host as URLs write it: an IPv6 address gets brackets. */
export const urlHost = (host: string): string => (bareHost(host).includes(':') ? `[${bareHost(host)}]` : host)

const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/

/** Whether a host is an IP address rather than a name. */
export const isAddress = (host: string): boolean => host.includes(':') || IPV4.test(host)

/** Reads the address of a URL. `ports`: the default port of each protocol that is allowed; throws for any other one. */
export function addressOf(url: string | URL, ports: Readonly<Record<string, number>>): NetworkAddress {
  const { protocol, hostname, port, username, password } = new URL(url)
  const standard = ports[protocol]
  if (standard === undefined)
    throw new Error(`not an address that begins with ${Object.keys(ports).join('// or ')}//: ${protocol}`)
  const host = bareHost(hostname)
  return {
    protocol,
    host,
    port: port === '' ? standard : Number(port),
    servername: isAddress(host) ? undefined : host,
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
  }
}

/** Whether a service that listens at `host` listens at every address of the machine. */
export const isAnyAddress = (host: string): boolean => ['0.0.0.0', '::'].includes(bareHost(host))

/** A host by which this machine calls a service that listens at `host`, as URLs write it. */
export const callableHost = (host: string): string =>
  isAnyAddress(host) ? (host.includes(':') ? '[::1]' : '127.0.0.1') : urlHost(host)
