import { X509Certificate } from 'node:crypto'
import { enrolmentHandlers, revokeHub } from '../../cloud/enrolment/enrol.ts'
import { renewClaimCode } from '../../cloud/enrolment/claim-codes.ts'
import { signInByCertificate } from '../../cloud/gateway/hub-logins.ts'
import { makeKeys } from '../../cloud/operations/releases/metadata.ts'
import { changeRollout, startRollout } from '../../cloud/operations/releases/rollouts.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import { makeKey } from '../../edge/enrolment/enrol.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { endOf } from '../../protocol/mqtt/certificates.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { beginOf } from '../../edge/enrolment/renewal.ts'
import { testMedia } from '../cloud/support/media.ts'
import { addTestRelease } from '../support/release.ts'
import type { Health } from '../world/update-board.ts'
import { PACKAGED } from './board.ts'
import type { Coverage } from './coverage.ts'
import type { Network } from './network.ts'
import type { Scheduler } from './scheduler.ts'
import type { Site } from './stage.ts'

export const RELEASES_URL = 'https://larder.example/releases'
const HOUR = 3_600_000
/** Certificates last so long that a clock which is wrong by an hour does no harm, and are renewed within a seed (`FIRST_AGE`). */
export const fleetRules = { hubCertificateMs: 12 * HOUR, rolloutOfflineMs: HOUR / 6 }

/** An open session ends this long after its revocation, at the latest (design 12). */
const ENDS_WITHIN_MS = 5000

interface Parts {
  scheduler: Scheduler
  coverage: Coverage
  network: Network
  sites: readonly Site[]
  plan: (delayMs: number, run: () => unknown) => void
}

/** A hub's life without visits: enrolment, certificates, revocation, releases and rollouts, by the operator's own commands. */
export class Fleet {
  /** How each release behaves, by version. */
  readonly releases: Map<string, Health>
  /** Hubs that were revoked, and have not been enrolled since. */
  readonly revoked = new Set<number>()
  /** Wrong facts, in words. */
  readonly problems: string[] = []
  readonly #parts: Parts
  readonly #keys: ReturnType<typeof makeKeys>

  /** The operator's machine: the commands and routes that work at the database. */
  readonly #operator: CloudContext

  constructor(parts: Parts, operator: CloudContext, releases: Map<string, Health>) {
    this.#parts = parts
    this.#operator = operator
    this.releases = releases
    this.#keys = makeKeys(operator.runtime.clock.now())
    parts.network.judge = (clientId, certificate) => this.#judge(clientId, certificate)
  }

  /** The embedded broker's decision. */
  async #judge(clientId: string, pem: string): Promise<string | undefined> {
    const { db, runtime } = this.#operator
    const { clock } = runtime
    const cert = new X509Certificate(pem)
    const certificate = {
      user: cert.subject.replace('CN=', ''),
      issuer: cert.issuer.replace('CN=', ''),
      serial: cert.serialNumber.toLowerCase(),
      from: beginOf(pem),
      until: endOf(cert),
    }
    const now = clock.now()
    if (now < certificate.from || now >= certificate.until)
      return 'the certificate is expired, or not yet valid'
    const login = await signInByCertificate(
      db,
      { clock, log: silentLog },
      { clientId, user: undefined, certificate },
    )
    return typeof login === 'string' ? login : undefined
  }

  /** A claim code is made, and exchanged at the board, `agoMs` ago. */
  async enrol({ hubId, hub }: Site, agoMs = 0): Promise<void> {
    const { coverage } = this.#parts
    const { runtime, ...rest } = this.#operator
    const clock = { ...runtime.clock, now: () => Math.floor(runtime.clock.now() - agoMs) }
    const operator: CloudContext = { ...rest, runtime: { ...runtime, clock } }
    const { code } = await operator.db.transact((tx) => renewClaimCode(tx, operator, hubId))
    const { key, csr } = await makeKey()
    const handlers = enrolmentHandlers(operator, {
      mqttUrl: 'mqtts://larder.example',
      brokerCa: () => undefined,
    })
    const body = { claim_code: code, csr }
    const answer = await handlers['owner.hubs.enroll']({ body } as never)
    hub.board!.enrol(key, answer as { certificate: string; ca: string })
    this.revoked.delete(hubId)
    coverage.hit('board enrolled')
    const again = await handlers['owner.hubs.enroll']({ body } as never).catch((error: Error) => error)
    if (!(again instanceof Error)) this.problems.push(`hub ${hubId} was enrolled twice with one code`)
  }

  /** A stolen board is shut out. */
  async revoke({ hubId }: Site): Promise<void> {
    const { coverage, plan, network } = this.#parts
    const operator = this.#operator
    if (this.revoked.has(hubId)) return
    await operator.db.transact((tx) => revokeHub(tx, operator.runtime, hubId))
    this.revoked.add(hubId)
    coverage.hit('board revoked')
    plan(ENDS_WITHIN_MS, async () => {
      const ended = await network.endLogins()
      if (this.revoked.has(hubId) && network.isConnected(hubUser(hubId)))
        this.problems.push(`hub ${hubId} is revoked, and its session is open`)
      coverage.hit('session of a revoked board ended', ended.length)
    })
  }

  /** A technician puts another board in the place of a hub's board: a new card, a new key, nothing else typed than a code. */
  async replace(site: Site, { losesJournal }: { losesJournal: boolean }): Promise<void> {
    const { hub } = site
    hub.kill('another board')
    hub.board!.renew()
    if (losesJournal) hub.loseStore()
    await this.enrol(site)
    this.#parts.coverage.hit('board replaced')
    hub.board!.boot()
    hub.start()
  }

  /** Signs a release, and starts a rollout. Undefined: another rollout runs. */
  async rollOut(
    health: Health,
    waves: readonly string[],
  ): Promise<{ id: string; version: string } | undefined> {
    const { scheduler, coverage } = this.#parts
    const operator = this.#operator
    const n = this.releases.size
    const version = `2026.2.${n}+000000${n}`
    await scheduler.track(addTestRelease(operator, testMedia(operator), version, this.#keys))
    this.releases.set(version, health)
    try {
      const options = { version, waves, failures: '10%' }
      const id = await operator.db.transact((tx) => startRollout(tx, operator, options))
      coverage.hit(`rollout of a release: ${health}`)
      return { id, version }
    } catch (error) {
      if (!/abort it, or wait/.test(String(error))) throw error
      return undefined
    }
  }

  /** A person ends the rollouts of bad releases, and goes to the hubs that are shut out. */
  async mend(): Promise<void> {
    const operator = this.#operator
    const rollouts = await operator.db.kysely
      .selectFrom('rollouts')
      .select(['id', 'version', 'state'])
      .execute()
    for (const { id, version, state } of rollouts) {
      const isBad = this.releases.get(version) !== 'healthy'
      const change = isBad ? 'abort' : 'resume'
      if (state === 'paused' || (state === 'running' && isBad))
        await operator.db.transact((tx) => changeRollout(tx, operator, id, change))
    }
    for (const site of this.#parts.sites)
      if (this.revoked.has(site.hubId)) await this.replace(site, { losesJournal: false })
  }

  /** Whether no updater has anything to do. */
  isAtRest(): boolean {
    return this.#parts.sites.every(({ hub }) => hub.board!.state.now.step === 'idle')
  }

  /** Judges the boards at the end: each runs a release that works, and only one hub has met a bad one. */
  judgeAll(): string[] {
    const { sites } = this.#parts
    for (const { hubId, hub } of sites) {
      const { health, version, state } = hub.board!
      if (health !== 'healthy' || state.now.step !== 'idle')
        this.problems.push(
          `hub ${hubId} has version ${version} (${health}), and its updater is ${state.now.step}`,
        )
    }
    for (const [version, health] of this.releases) {
      const met = sites.filter(({ hub }) => hub.board!.ran.includes(version)).map(({ hubId }) => hubId)
      if (health !== 'healthy' && met.length > 1)
        this.problems.push(`the bad release ${version} reached the hubs ${met.join(', ')}`)
    }
    return this.problems
  }
}

/** The releases at the start: the package of every board. */
export const firstReleases = (): Map<string, Health> => new Map([[PACKAGED, 'healthy']])
