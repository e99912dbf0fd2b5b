import { X509Certificate } from 'node:crypto'
import { renameSync } from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import { every, type Clock } from '../../protocol/model/runtime.ts'
import { authoritiesDigest, certificatesIn, endOf, RENEWAL_DUE } from '../../protocol/mqtt/certificates.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { CertificateAnswer, type CertificateRequest } from '../../protocol/mqtt/session.ts'
import { hubUser, parseDownTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { replaceText } from '../replace-text.ts'
import { enrolmentFiles, isOfKey, nextKey, type Pair } from './enrolment.ts'

/**
 * After this many failed attempts with the present certificate, the hub shows the previous one as often, and so on. It is more
 * than the usual number of brokers, so each broker sees both.
 */
const ATTEMPTS_WITH_ONE = 6

/** A new key and the request for its certificate, PEM. */
export interface NewKey {
  key: string
  csr: string
}

export interface RenewalOptions {
  hubId: number
  store: string
  /** The present certificate and its key. */
  client: Pair
  /** The pair before it. */
  previous?: Pair | undefined
  /** The authorities that the cloud has given, PEM. */
  ca: string
  clock: Clock
  log: Log
  /** The present time, from whatever proves it: milliseconds since the Unix epoch. */
  now: () => number
  newKey: () => Promise<NewKey>
  /** The next certificate is in use. */
  onRenewed?: (cert: string) => void
  /** Other authorities are in use. */
  onAuthorities?: (ca: string) => void
  /** Time between two attempts. */
  againMs: number
}

/**
 * Renews the hub's certificate over MQTT (SPEC §2), and follows the authorities of the cloud. A certificate of a former authority
 * is renewed at once. The new key becomes valid with its certificate: until then the hub has the
 * former pair, also after a power failure at any step. The hub keeps that pair until its end. If the clock of the cloud was ahead,
 * the next certificate begins in the future, and brokers refuse it until then.
 */
export class Renewal {
  readonly #options: RenewalOptions
  #client: Pair
  #previous: Pair | undefined
  /** Attempts to connect since the last connection. */
  #failed = 0
  #ca: string
  #transport: MqttTransport | undefined
  /** The key of the requests, until one is answered: any answer fits it. */
  #next: NewKey | undefined
  #making: Promise<NewKey> | undefined
  /** Whether this connection has asked again at once, after it got other authorities. */
  #hasRepeated = false

  constructor(options: RenewalOptions) {
    this.#options = options
    this.#client = options.client
    this.#previous = options.previous
    this.#ca = options.ca
    every(options.clock, options.againMs, () => void this.#renew())
  }

  /** The certificate and the key of this connection, or for the next one: sometimes the previous pair, while no attempt succeeds. */
  client(): Pair {
    const isOthersTurn = Math.floor(this.#failed / ATTEMPTS_WITH_ONE) % 2 === 1
    const previous = isOthersTurn ? this.#previous : undefined
    const isValid = previous !== undefined && endOf(new X509Certificate(previous.cert)) > this.#options.now()
    return isValid ? previous : this.#client
  }

  /** The authorities for the next connection, PEM. */
  ca(): string {
    return this.#ca
  }

  /** Connections that also carry the renewal. */
  over(open: OpenTransport): OpenTransport {
    return (options, handlers) => {
      const transport = open(options, {
        ...handlers,
        onConnect: () => {
          handlers.onConnect()
          this.#transport = transport
          this.#hasRepeated = false
          void this.#renew()
        },
        onDisconnect: (reason) => {
          this.#failed = this.#transport ? 0 : this.#failed + 1
          this.#transport = undefined
          handlers.onDisconnect(reason)
        },
        onMessage: (topic, payload) => {
          if (parseDownTopic(this.#options.hubId, topic) === 'certificate') this.#take(payload)
          else handlers.onMessage(topic, payload)
        },
      })
      return transport
    }
  }

  async #renew(): Promise<void> {
    const { now, hubId, log } = this.#options
    if (this.#transport === undefined) return
    try {
      const csr = now() >= dueAt(this.client().cert, this.#ca) ? await this.#request() : undefined
      const request: CertificateRequest = { csr, ca: authoritiesDigest(this.#ca) }
      await this.#transport?.publish(upTopic(hubId, 'certificate'), JSON.stringify(request))
    } catch (error) {
      log.warn({ error: String(error) }, 'the hub could not ask for its next certificate')
    }
  }

  async #request(): Promise<string> {
    const { newKey } = this.#options
    // Two attempts at once use one key.
    this.#next ??= await (this.#making ??= newKey().finally(() => (this.#making = undefined)))
    return this.#next.csr
  }

  #take(payload: string): void {
    const answer = CertificateAnswer.safeParse(parseMessage(payload))
    if (!answer.success)
      return this.#options.log.warn({}, 'the cloud sent authorities or a certificate that cannot be read')
    const { ca, certificate } = answer.data
    if (ca !== undefined) this.#takeAuthorities(ca)
    if (certificate !== undefined) this.#takeCertificate(certificate)
  }

  #takeAuthorities(ca: string): void {
    const { store, log, onAuthorities } = this.#options
    try {
      if (certificatesIn(ca).length === 0)
        return log.warn({}, 'the cloud sent no certificate authority; the former ones stay')
      replaceText(enrolmentFiles(store).ca, ca, 0o644)
    } catch (error) {
      return log.error({ error: String(error) }, 'the certificate authorities could not be stored')
    }
    this.#ca = ca
    onAuthorities?.(ca)
    log.info({}, 'the hub trusts the present certificate authorities of the cloud')
    // Only now the cloud may sign a certificate of a new authority. Processes of the cloud whose authorities differ must not
    // cause an endless exchange.
    if (this.#hasRepeated) return
    this.#hasRepeated = true
    void this.#renew()
  }

  #takeCertificate(cert: string): void {
    const { hubId, store, log } = this.#options
    if (this.#next === undefined) return
    const { key } = this.#next
    const used = this.client()
    try {
      const next = new X509Certificate(cert)
      // A certificate of a newer authority may end earlier, for example because the cloud gives shorter ones now.
      const isNewer = isOfNewest(cert, this.#ca) && !isOfNewest(used.cert, this.#ca)
      const isLater = isNewer || endOf(next) > endOf(new X509Certificate(used.cert))
      if (!isOfKey(cert, key) || next.subject !== `CN=${hubUser(hubId)}` || !isLater)
        return log.warn(
          {},
          'the cloud sent a certificate of another key or hub, or an older one; it is not used',
        )
      const paths = enrolmentFiles(store)
      replaceText(paths.previous, JSON.stringify(used))
      replaceText(nextKey(paths.key), key)
      replaceText(paths.certificate, cert, 0o644)
      renameSync(nextKey(paths.key), paths.key)
    } catch (error) {
      return log.error({ error: String(error) }, 'the next certificate could not be stored')
    }
    this.#next = undefined
    this.#previous = used
    this.#client = { cert, key }
    this.#failed = 0
    this.#options.onRenewed?.(cert)
    log.info(
      { until: new Date(endOf(new X509Certificate(cert))).toISOString() },
      'the certificate is renewed',
    )
  }
}

/** The beginning of a certificate (PEM): the cloud had this date when it signed it. Milliseconds since the Unix epoch. */
export const beginOf = (cert: string): number => Date.parse(new X509Certificate(cert).validFrom)

/** Whether the newest authority, which is the first, has signed a certificate. A damaged file of authorities proves nothing. */
function isOfNewest(cert: string, ca: string): boolean {
  try {
    const [newest] = certificatesIn(ca)
    return newest === undefined || new X509Certificate(cert).checkIssued(newest)
  } catch {
    return true
  }
}

/** When a hub renews a certificate of its authority: a third of its lifetime is left. */
export function renewalDueAt(cert: string): number {
  const from = beginOf(cert)
  return from + (endOf(new X509Certificate(cert)) - from) * RENEWAL_DUE
}

function dueAt(cert: string, ca: string): number {
  if (!isOfNewest(cert, ca)) return 0
  return renewalDueAt(cert)
}
