import { X509Certificate } from 'node:crypto'
import { addressOf, type NetworkAddress } from '../model/address.ts'
import { certificatesIn, problemOfDates, trustedChain, type CertificateTime } from './certificates.ts'
import { ConnectionProblem } from './connection-problem.ts'
import { limitPackets } from './packet-limit.ts'

type Socket = import('node:net').Socket
type TlsSocket = import('node:tls').TLSSocket
type Duplex = import('node:stream').Duplex
type DetailedPeerCertificate = import('node:tls').DetailedPeerCertificate

/** The used parts of Node; the protocol itself opens nothing. */
export interface SocketModules {
  net: Pick<typeof import('node:net'), 'connect'>
  tls: Pick<typeof import('node:tls'), 'connect' | 'checkServerIdentity' | 'rootCertificates'>
  stream: Pick<typeof import('node:stream'), 'Duplex'>
}

export interface BrokerSocketOptions {
  modules: SocketModules
  /** PEM of the authorities to trust with `mqtts:` (MQTT_CA); by default the system's. Read for each connection. */
  ca?: string | (() => string | undefined) | undefined
  /** Name of the setting for `ca` in messages; by default MQTT_CA. */
  caSetting?: string
  /** The client's certificate and key (PEM), if it signs in with them. Read for each connection. */
  client?: (() => { cert: string; key: string }) | undefined
  /** The time for checking certificates. */
  time: () => CertificateTime
  /** Called with each accepted certificate of a broker. */
  onCertificate?: ((certificate: X509Certificate) => void) | undefined
}

/** Default ports of brokers. */
export const BROKER_PORTS = { 'mqtt:': 1883, 'mqtts:': 8883 } as const

/**
 * Opens a connection to a broker for mqtt.js. It sets TCP_NODELAY, because Nagle's algorithm costs about 40 ms for each
 * round trip. A packet above the limit of SPEC §8 ends the connection. Over TLS nothing is sent or delivered before the
 * broker's certificate is accepted.
 */
export function openBrokerSocket(url: string, options: BrokerSocketOptions): Socket | Duplex {
  const address = addressOf(url, BROKER_PORTS)
  const { host, port, protocol } = address
  const socket =
    protocol === 'mqtts:'
      ? openCheckedTls(address, options, "the broker's certificate")
      : options.modules.net.connect({ host, port, noDelay: true })
  limitPackets(socket)
  return socket
}

/**
 * Opens a TLS connection that sends and delivers nothing before the server's certificate is accepted, judged by the time that
 * the caller knows. `subject` begins the sentence of a refusal.
 */
export function openCheckedTls(
  address: Pick<NetworkAddress, 'host' | 'port' | 'servername'>,
  options: BrokerSocketOptions,
  subject: string,
): Duplex {
  const { tls } = options.modules
  const { host, port, servername } = address
  const ca = authoritiesOf(options)
  let socket: TlsSocket
  try {
    socket = tls.connect({
      host,
      port,
      // A certificate may name an address too; then there is no server name to send.
      ...(servername !== undefined && { servername }),
      ...(ca !== undefined && { ca }),
      ...options.client?.(),
      // Checked below, before anything is sent: OpenSSL uses only the machine's clock.
      rejectUnauthorized: false,
    })
  } catch (error) {
    return unusableFiles(error, options)
  }
  socket.setNoDelay(true)
  const { gate, open } = gateBefore(socket, options.modules)
  socket.once('secureConnect', () => {
    const problem = problemOfServer(socket, host, options)
    if (problem === undefined) open()
    else gate.destroy(new ConnectionProblem(`${subject} ${problem}`))
  })
  return gate
}

/** A connection that fails because a PEM file is damaged: the caller tries again, and the file may be replaced meanwhile. */
function unusableFiles(error: unknown, { modules, caSetting = 'MQTT_CA' }: BrokerSocketOptions): Duplex {
  const stream = new modules.stream.Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  const why = error instanceof Error ? error.message : String(error)
  return stream.destroy(new ConnectionProblem(`${caSetting} or the own certificate cannot be used: ${why}`))
}

/**
 * A stream in front of a socket. It holds back written data until `open`. If it ends before, the socket gets no data.
 */
function gateBefore(socket: TlsSocket, { stream }: SocketModules): { gate: Duplex; open: () => void } {
  let isOpen = false
  let whenOpen = (): void => {}
  const gate = new stream.Duplex({
    read() {
      if (isOpen) socket.resume()
    },
    write(chunk: Buffer, _encoding, done) {
      whenOpen = () => void socket.write(chunk, done)
      if (isOpen) whenOpen()
    },
    final(done) {
      if (isOpen) socket.end(done)
      else done()
    },
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  socket.on('error', (error) => gate.destroy(error))
  socket.on('close', () => gate.destroy())
  return {
    gate,
    open() {
      if (gate.destroyed) return
      isOpen = true
      // Only now, because a listener makes the socket deliver data.
      socket.on('data', (chunk: Buffer) => {
        if (!gate.push(chunk)) socket.pause()
      })
      socket.on('end', () => gate.push(null))
      whenOpen()
    },
  }
}

const authoritiesOf = ({ ca }: BrokerSocketOptions): string | undefined =>
  typeof ca === 'function' ? ca() : ca

/** Why the server's certificate is not accepted; undefined if it is. */
function problemOfServer(socket: TlsSocket, host: string, options: BrokerSocketOptions): string | undefined {
  const { modules, onCertificate } = options
  const ca = authoritiesOf(options)
  const time = options.time()
  const peer = socket.getPeerCertificate(true)
  const presented = chainOf(peer)
  const [leaf] = presented
  if (!leaf) return 'is missing'
  // Node has the code of OpenSSL here, or the code of its own check of the name.
  const code = socket.authorized ? undefined : String(socket.authorizationError)
  let chain: readonly X509Certificate[] = presented
  if (code === 'CERT_NOT_YET_VALID') {
    // OpenSSL reports only its last verdict, so the chain and the name are verified here.
    const wrongName = modules.tls.checkServerIdentity(host, peer)
    if (wrongName) return textOfNameProblem(wrongName)
    const authorities = ca === undefined ? modules.tls.rootCertificates.join('\n') : ca
    const trusted = trustedChain(presented, certificatesIn(authorities))
    if (typeof trusted === 'string') return trusted
    chain = trusted
  } else if (code !== undefined) {
    const { caSetting = 'MQTT_CA' } = options
    const advice =
      ca === undefined ? `set ${caSetting} to the file of its authority` : `${caSetting} does not hold it`
    return wordsOf(code, leaf, advice, modules.tls.checkServerIdentity(host, peer))
  }
  const problem = problemOfDates(chain, time)
  if (problem === undefined) onCertificate?.(leaf)
  return problem
}

function chainOf(peer: DetailedPeerCertificate): X509Certificate[] {
  const chain: X509Certificate[] = []
  for (let at: DetailedPeerCertificate | undefined = peer; at?.raw; at = at.issuerCertificate) {
    const { raw } = at
    if (chain.some((known) => known.raw.equals(raw))) break
    chain.push(new X509Certificate(raw))
  }
  return chain
}

const textOfNameProblem = (error: Error): string => `is for another name (${error.message})`

/** The texts for OpenSSL's codes. */
const UNKNOWN_AUTHORITY: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self-signed certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'self-signed certificate in certificate chain',
  UNABLE_TO_GET_ISSUER_CERT: 'unable to get issuer certificate',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'unable to get local issuer certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'unable to verify the first certificate',
}

function wordsOf(code: string, leaf: X509Certificate, advice: string, wrongName: Error | undefined): string {
  const unknown = UNKNOWN_AUTHORITY[code]
  if (unknown !== undefined) return `is of an unknown authority: ${advice} (${unknown})`
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return `has expired (it ends on ${leaf.validTo})`
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return wrongName ? textOfNameProblem(wrongName) : 'is for another name'
    default:
      return `is not accepted (${code})`
  }
}
