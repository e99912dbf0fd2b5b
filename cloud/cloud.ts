import type { Context } from 'hono'
import type { RateClasses } from '../protocol/contract/route.ts'
import type { DemoRouteId } from '../protocol/contract/routes.ts'
import { routes } from '../protocol/contract/routes.ts'
import { demoRoutes } from '../protocol/contract/root-routes.ts'
import type { PageAssets } from '../protocol/page-assets.ts'
import type { CommerceServices } from './commerce/services.ts'
import { commerceWork } from './commerce/work.ts'
import type { CloudContext } from './platform/context.ts'
import { ListeningWatch } from './platform/listening.ts'
import type { VerifyIdentity } from './platform/credentials/identity-token.ts'
import { credentialResolver } from './platform/credentials/resolve.ts'
import { sessionWork } from './enrolment/end-sessions.ts'
import { enrolmentHandlers, type EnrolmentOptions } from './enrolment/enrol.ts'
import { authorityWork } from './enrolment/rotation.ts'
import { commerceHandlers, operationsHandlers, peopleHandlers } from './handlers.ts'
import { hubDomain } from './hub-domain.ts'
import { eventHandlers } from './events/event-list.ts'
import { EventFeed, streamHandlers } from './events/feed.ts'
import { alarmWork } from './events/alarms/alarms.ts'
import { webhookWork } from './events/webhooks/deliver.ts'
import { webhookHandlers } from './events/webhooks/handlers.ts'
import type { Poster } from './events/webhooks/post.ts'
import { Gateway, type Broker } from './gateway/gateway.ts'
import { diagHandlers } from './operations/diag/handlers.ts'
import { createMetrics, type Metrics } from './operations/diag/metrics.ts'
import type { ProcessFacts } from './operations/diag/system-info.ts'
import type { Budgets } from './platform/limits/budgets.ts'
import { cloudRefusals, type CloudRefusals } from './platform/refusals.ts'
import type { GatewayLimits } from './platform/settings/gateway-limits.ts'
import { createApp, type App } from './platform/http/app.ts'
import type { Handlers } from './platform/http/handler.ts'
import { Health, type Checks } from './platform/http/health.ts'
import { openApiDocument, descriptionHandlers } from './platform/http/openapi.ts'
import { pageRoutes } from './platform/http/page.ts'
import { memoryRateLimiter, rateLimitWork, SharedRateLimiter } from './platform/http/rate-limit.ts'
import { docsHandlers } from './docs/docs-handlers.ts'
import type { Description } from './docs/description.ts'
import { certificateWork, type KnownCertificate } from './operations/alarms/certificates.ts'
import { workAlarmWork, workObserver } from './operations/alarms/work-alarms.ts'
import { mailWork, type SendMail } from './operations/alarms/mail.ts'
import { morningWork } from './operations/reports/morning-mail.ts'
import { diagnosisWork } from './operations/hubs/diagnoses.ts'
import { hubWork } from './operations/hubs/hub-events.ts'
import { leavingWork } from './operations/ownership/next-cell.ts'
import { changeWork } from './operations/ssh/bin-changes.ts'
import type { Remote } from './operations/ssh/remote.ts'
import { fileHandlers } from './platform/http/file-handlers.ts'
import { releaseHandlers } from './operations/releases/releases.ts'
import { rolloutWork } from './operations/releases/rollouts.ts'
import { createMedia, type Media } from './platform/media/media.ts'
import { mediaSigner, type MediaSigner } from './platform/media/addresses.ts'
import type { Cleaning } from './platform/media/clean/cleaning.ts'
import type { MediaStore } from './platform/media/store.ts'
import type { CodeIssuer } from './platform/identity/code-flow.ts'
import type { SiteRoute } from './platform/http/site-route.ts'
import { consolePage } from './console-page.ts'
import { shopPage } from './shop-page.ts'
import { sessionRoutes } from './people/sessions/session-routes.ts'
import { noticeWork, type Senders } from './people/notifications/notices.ts'
import { OrderFeed } from './commerce/orders/order-feed.ts'
import type { CardProcessor } from './commerce/processors/processor.ts'
import { putBack } from './clock-step.ts'
import { retentionWork } from './retention.ts'
import { backgroundTasks, runKinds, taskHandlers } from './operations/diag/background-tasks.ts'
import { WorkRunner, type WorkKinds } from './platform/work/runner.ts'
import { addressUnder, pathUnder } from './platform/public-url.ts'
import { settled } from './platform/work/background.ts'
import { startWorker, type Worker } from './platform/work/workers.ts'

export interface CloudOptions {
  context: CloudContext
  broker: Broker
  /** Identifies this run of the process; see `GatewayOptions`. */
  processId: string
  gatewaySettings?: Partial<GatewayLimits>
  processor: CardProcessor
  webhookSecret: string | readonly string[]
  /** The processor's public key, for its form for cards. */
  publishableKey?: string | undefined
  verifyIdentity: VerifyIdentity
  /** Further checks of readiness, by name. */
  checks?: Checks
  /** An enrolled hub needs these. */
  enrolment: EnrolmentOptions
  /** These are shared with the embedded broker, if there is one. */
  refusals?: CloudRefusals
  budgets?: Budgets
  /** The embedded issuer's routes, if it is used. */
  demoHandlers?: Handlers<DemoRouteId>
  /** The issuer at which people sign in in a browser. Absent: nobody can. */
  signIn?: CodeIssuer | undefined
  /** Routes of further pages. */
  site?: readonly SiteRoute[]
  /** The public URL of the service, without a trailing slash. */
  baseUrl: string
  /** Origins of pages that may call the service (`CORS_ORIGINS`). */
  corsOrigins: readonly string[]
  /** Whether HSTS includes the subdomains of the host of `baseUrl`. */
  hstsSubdomains?: boolean
  /** Further names in `Host` by which the demo's routes may be called. */
  allowedHosts?: readonly string[]
  /** The documentation's page, and the owner's console. */
  docs: PageAssets
  console?: PageAssets
  /** The customer's page. Absent: no shop. */
  shop?: PageAssets
  /** Whether `/docs` and `/openapi.json` are served; by default they are. */
  hasDocs?: boolean
  /** The file store, and the secret that signs its addresses. */
  mediaStore: MediaStore
  /** Cleans uploaded files; in the caller's own thread by default. */
  mediaCleaning?: Cleaning
  mediaSecret: string | readonly string[]
  /** Reaches the hubs' management services. */
  remote: Remote
  /** Sends webhooks; stopped with the service. */
  poster: Poster
  /** Sends alarms by mail; absent if there is no mail server. */
  sendMail?: SendMail | undefined
  /** Sends notices to customers' devices. */
  senders: Senders
  /** Due work of other parts on this database: the sandbox processor. */
  otherWork?: WorkKinds
  /** The certificates that this process uses; alarms and metrics report when they expire. */
  certificates?: () => readonly KnownCertificate[]
  /** Folders for the metric of free space, by the names of their settings. */
  folders?: Readonly<Record<string, string>>
  /** Facts about this process for diagnostics, with its name and the folder of its log files. */
  facts: Omit<ProcessFacts, 'broker' | 'refused'> & {
    name: string
    logFolder: string
    brokerClients?: () => number
  }
  addressOf: (c: Context) => string
  /** Whether metrics for Prometheus are collected. */
  hasMetrics?: boolean
  /** See `AppOptions`. */
  rates?: RateClasses | undefined
  /** See `EndpointParts`. */
  checkResponses?: boolean
}

/** The cloud service, composed; it does not listen (`main.ts` does). */
export class Cloud {
  readonly app: App
  readonly health: Health
  readonly metrics: Metrics | undefined
  readonly gateway: Gateway
  readonly work: WorkRunner
  readonly #options: CloudOptions
  readonly #context: CloudContext
  /** The context with the background connections. */
  readonly #background: CloudContext
  readonly #listening: ListeningWatch
  readonly #refusals: CloudRefusals
  readonly #media: Media
  readonly #feed: EventFeed
  readonly #orderFeed: OrderFeed
  /** Several processes can share a PostgreSQL database, never a SQLite file. */
  readonly #sharedLimiter: SharedRateLimiter | undefined
  #worker: Worker | undefined

  constructor(options: CloudOptions) {
    const { processId, processor, broker, gatewaySettings } = options
    const { db, runtime, settings } = options.context
    const { listeningGapMs: gapMs } = settings
    this.#options = options
    this.#listening = new ListeningWatch({
      clock: runtime.clock,
      gapMs,
      hearsBroker: () => this.gateway.hearsBroker(gapMs),
      pingDatabase: () => db.ping(),
    })
    const context: CloudContext = { ...options.context, underWay: new Set(), listening: this.#listening }
    this.#context = context
    this.#background = { ...context, db: db.for('background') }
    this.#refusals = options.refusals ?? cloudRefusals(context)
    this.gateway = new Gateway({
      domain: hubDomain(options.enrolment),
      refusals: this.#refusals,
      context: { ...context, db: db.for('gateway') },
      broker,
      processId,
      ...(gatewaySettings && { settings: gatewaySettings }),
    })
    const services: CommerceServices = { context, processor, commands: this.gateway.commands }
    const signer = mediaSigner({
      baseUrl: options.baseUrl,
      secret: options.mediaSecret,
      lifetimeMs: settings.fileAddressMs,
      kept: settings.fileAddressesKept,
      clock: runtime.clock,
    })
    const { mediaStore: store, mediaCleaning: cleaning } = options
    this.#media = createMedia({ context, store, signer, cleaning })
    this.work = new WorkRunner(
      this.#background,
      {
        ...dueWork({ ...services, context: this.#background }, this.#media, options),
        ...diagnosisWork(this.#background, this.gateway.diagnoses),
        ...sessionWork(this.#background, {
          ...options.enrolment,
          isEmbedded: broker.kind === 'own',
          erase: this.gateway.erase,
        }),
      },
      workObserver(this.#background),
    )
    this.#feed = new EventFeed(this.#background, this.#media)
    this.#orderFeed = new OrderFeed(this.#background, this.#media)
    this.#sharedLimiter = db.kind === 'postgres' ? new SharedRateLimiter(this.#background) : undefined
    this.health = new Health(runtime.clock, {
      database: () => db.ping(),
      broker: () => this.gateway.isConnected(),
      subscriptions: () => this.gateway.hearsItsHubs(),
      ...options.checks,
    })
    this.metrics = this.#createMetrics()
    this.app = this.#createApp(services, signer)
  }

  start(): void {
    this.health.phase = 'ready'
    this.gateway.start()
    this.#listening.start()
    this.#feed.start()
    this.#orderFeed.start()
    this.work.start()
    const { processId, facts } = this.#options
    this.#worker = startWorker(this.#background, { processId, ...facts }, putBack)
  }

  /** Ends endless answers, before the server waits for answers in progress. */
  endStreams(): Promise<void> {
    this.health.phase = 'stopping'
    this.#orderFeed.stop()
    return this.#feed.stop()
  }

  /** Stops the service in order; it cannot be used afterwards. */
  async stop(): Promise<void> {
    await this.endStreams()
    this.#sharedLimiter?.stop()
    this.#options.poster.stop()
    this.#listening.stop()
    this.gateway.diagnoses.stop()
    await this.work.stop()
    await this.#worker?.stop()
    await this.gateway.stop()
    await settled(this.#context)
    await this.#media.cleaning.stop()
  }

  #facts() {
    const { facts } = this.#options
    return {
      ...facts,
      refused: () => this.#refusals.totals,
      broker: () => ({ connected: this.gateway.isConnected(), clients: facts.brokerClients?.() ?? null }),
    }
  }

  #createMetrics(): Metrics | undefined {
    const { hasMetrics, certificates = () => [], folders = {} } = this.#options
    if (!hasMetrics) return undefined
    const brokerLosses = (): number => this.gateway.connectionsLost
    return createMetrics({ context: this.#background, ...this.#facts(), certificates, folders, brokerLosses })
  }

  #createApp(services: CommerceServices, signer: MediaSigner): App {
    const { metrics } = this
    const [options, context, media, facts] = [this.#options, this.#context, this.#media, this.#facts()]
    const background = this.#background
    const tasks = backgroundTasks(background, options.processId, (task) =>
      runKinds(background, this.work, task),
    )
    return createApp({
      health: this.health,
      ...(metrics && { onServed: (served) => metrics.onServed(served) }),
      isSecure: options.baseUrl.startsWith('https:'),
      hstsSubdomains: options.hstsSubdomains ?? false,
      corsOrigins: options.corsOrigins,
      allowedHosts: [new URL(options.baseUrl).hostname, ...(options.allowedHosts ?? [])],
      context,
      resolveCredential: credentialResolver(context, options.verifyIdentity),
      limiter: this.#sharedLimiter ?? memoryRateLimiter(context.runtime.clock),
      rates: options.rates,
      media,
      refusals: this.#refusals,
      ...(options.budgets && { budgets: options.budgets }),
      checkResponses: options.checkResponses ?? false,
      addressOf: options.addressOf,
      site: siteRoutes(context, services.processor, options),
      handlers: {
        ...platformHandlers(context, media, signer, options),
        ...integratorHandlers(context, media, this.#feed, options.poster),
        ...commerceHandlers(services, media, this.#orderFeed, options),
        ...operationsHandlers(services, media, options.remote),
        ...diagHandlers(context, facts, facts.logFolder),
        ...taskHandlers(context, tasks),
        ...peopleHandlers(services, media, options),
        ...options.demoHandlers,
      },
    })
  }
}

/** The routes of the service's own pages, beside the documentation. */
const siteRoutes = (context: CloudContext, processor: CardProcessor, options: CloudOptions): SiteRoute[] => [
  ...sessionRoutes(sessionParts(context, options)),
  ...(options.site ?? []),
  ...(options.console
    ? pageRoutes('/console', pathUnder(options.baseUrl, '/console'), options.console, consolePage(context))
    : []),
  ...(options.shop
    ? pageRoutes('/shop', pathUnder(options.baseUrl, '/shop'), options.shop, shopPage(context, processor))
    : []),
]

/** With the embedded issuer people return to the address that they called, which may be another name of the machine. */
const sessionParts = (context: CloudContext, { signIn, demoHandlers, baseUrl }: CloudOptions) => ({
  context,
  issuer: signIn,
  publicUrl: demoHandlers ? undefined : baseUrl,
})

/** All kinds of due work. `services` use the background connections. */
function dueWork(
  services: CommerceServices,
  media: Media,
  { senders, remote, sendMail, poster, otherWork, certificates, baseUrl }: CloudOptions,
): WorkKinds {
  const { context } = services
  return {
    ...commerceWork(services),
    ...noticeWork(context, senders),
    ...changeWork({ context, remote }),
    ...hubWork(context),
    ...leavingWork(context),
    ...rolloutWork(context, addressUnder(baseUrl, '/releases')),
    ...alarmWork(context),
    ...workAlarmWork(context),
    ...authorityWork(context),
    ...certificateWork(context, certificates ?? (() => [])),
    ...mailWork(context, sendMail),
    ...morningWork(context, sendMail),
    ...webhookWork({ context, addressOf: (key) => media.addressOf(key), poster }),
    ...retentionWork(context, media),
    ...media.work,
    ...rateLimitWork(context),
    ...otherWork,
  }
}

function platformHandlers(
  context: CloudContext,
  media: Media,
  signer: MediaSigner,
  { baseUrl, docs, hasDocs = true, demoHandlers, enrolment }: CloudOptions,
) {
  const { clock, random } = context.runtime
  const isServed = ([id]: [string, unknown]): boolean => demoHandlers !== undefined || !(id in demoRoutes)
  const served = Object.fromEntries(Object.entries(routes).filter(isServed)) as Partial<typeof routes>
  const describe = () => openApiDocument(baseUrl, served)
  const handlers = {
    ...descriptionHandlers(clock, describe),
    ...docsHandlers(random, docs, () => describe() as unknown as Description),
    ...fileHandlers(context, media, signer),
    ...enrolmentHandlers(context, enrolment),
    ...releaseHandlers(context, media),
  }
  if (hasDocs) return handlers
  // A route without a handler is not served.
  const { 'root.docs': _page, 'root.docs.file': _file, 'root.openapi': _document, ...others } = handlers
  return others as typeof handlers
}

const integratorHandlers = (context: CloudContext, media: Media, feed: EventFeed, poster: Poster) => ({
  ...eventHandlers(context, media),
  ...streamHandlers(context, feed),
  ...webhookHandlers(context, poster),
})
