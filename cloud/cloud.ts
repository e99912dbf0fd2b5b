import type { Context } from 'hono'
import type { DemoRouteId } from '../protocol/contract/routes.ts'
import { routes } from '../protocol/contract/routes.ts'
import { demoRoutes } from '../protocol/contract/root-routes.ts'
import type { PageAssets } from '../protocol/page-assets.ts'
import { analyticsHandlers } from './commerce/analytics/reports.ts'
import { productHandlers } from './commerce/catalogue/products.ts'
import { facingHandlers } from './commerce/catalogue/facings.ts'
import { inventoryHandlers } from './commerce/catalogue/inventory.ts'
import { bannerHandlers } from './commerce/deals/banners.ts'
import { commerceWork } from './commerce/work.ts'
import type { CloudContext } from './platform/context.ts'
import { configurationHandlers } from './operations/controls/configuration.ts'
import { controlHandlers, fridgeHandlers } from './operations/controls/handlers.ts'
import { operationHandlers } from './operations/controls/unknown-operations.ts'
import { deliveryHandlers } from './operations/controls/open-delivery.ts'
import type { VerifyIdentity } from './platform/credentials/identity-token.ts'
import { credentialResolver } from './platform/credentials/resolve.ts'
import { dealHandlers } from './commerce/deals/handlers.ts'
import { hubDomain } from './hub-domain.ts'
import { eventHandlers } from './events/event-list.ts'
import { EventFeed } from './events/feed.ts'
import { streamHandlers } from './events/stream-handler.ts'
import { alarmWork } from './events/alarms/alarms.ts'
import { webhookWork } from './events/webhooks/deliver.ts'
import { webhookHandlers } from './events/webhooks/handlers.ts'
import type { Poster } from './events/webhooks/post.ts'
import { Gateway, type Broker } from './gateway/gateway.ts'
import { diagHandlers } from './operations/diag/handlers.ts'
import { createMetrics, type Metrics } from './operations/diag/metrics.ts'
import type { ProcessFacts } from './operations/diag/system-info.ts'
import { cloudRefusals, type CloudRefusals } from './platform/refusals.ts'
import type { GatewaySettings } from './platform/settings/settings.ts'
import { createApp, type App } from './platform/http/app.ts'
import type { Handlers } from './platform/http/handler.ts'
import { Health } from './platform/http/health.ts'
import { openApiDocument } from './platform/http/openapi.ts'
import { memoryRateLimiter, purgeRateLimits, SharedRateLimiter } from './platform/http/rate-limit.ts'
import { docsHandlers } from './docs/docs-handlers.ts'
import { descriptionHandlers } from './platform/http/description-handlers.ts'
import { doorHandlers } from './operations/doors/handlers.ts'
import { alarmHandlers } from './operations/alarms/handlers.ts'
import { workAlarmWork, workWitness } from './operations/alarms/work-alarms.ts'
import { mailWork, type SendMail } from './operations/alarms/mail.ts'
import { hubWork } from './operations/hubs/hub-events.ts'
import { temperatureHandlers } from './operations/hubs/temperatures.ts'
import { hubHandlers } from './operations/hubs/hubs.ts'
import { loyaltyHandlers } from './commerce/loyalty/handlers.ts'
import { changeWork, managementHandlers } from './operations/ssh/bin-changes.ts'
import type { Remote } from './operations/ssh/remote.ts'
import { fileHandlers } from './platform/http/file-handlers.ts'
import { createMedia } from './platform/media/media.ts'
import { mediaSigner } from './platform/media/addresses.ts'
import type { MediaStore } from './platform/media/store.ts'
import { maintenanceHandlers } from './operations/maintenance/reports.ts'
import { noticeWork, type Senders } from './people/notifications/notices.ts'
import { OrderFeed } from './commerce/orders/order-feed.ts'
import { orderHandlers, ownerOrderHandlers, transferHandlers } from './commerce/orders/handlers.ts'
import { cancellationHandlers } from './commerce/fulfilment/delete-order.ts'
import { refundHandlers } from './commerce/refunds/refund-requests.ts'
import { paymentHandlers } from './commerce/payments/handlers.ts'
import type { CardProcessor } from './commerce/processors/processor.ts'
import { putBack } from './clock-step.ts'
import { retentionWork } from './retention.ts'
import { backgroundTasks, runKinds, taskHandlers } from './operations/diag/background-tasks.ts'
import { recurring, WorkRunner, type WorkKinds } from './platform/work/runner.ts'
import { settled } from './platform/work/background.ts'
import { startWorker, type Worker } from './platform/work/workers.ts'
import { accountHandlers, userHandlers } from './people/users/handlers.ts'
import { profileHandlers } from './people/users/profile.ts'
import { walletHandlers } from './commerce/wallet/handlers.ts'

export interface CloudOptions {
  context: CloudContext
  broker: Broker
  /** Names this life of this process; see `GatewayOptions`. */
  processId: string
  gatewaySettings?: Partial<GatewaySettings>
  processor: CardProcessor
  webhookSecret: string
  verifyIdentity: VerifyIdentity
  /** Shared with the embedded broker, where there is one. */
  refusals?: CloudRefusals
  /** The embedded issuer's routes, where it is used. */
  demoHandlers?: Handlers<DemoRouteId>
  /** As callers know the service, without a slash at its end. */
  baseUrl: string
  /** Origins whose pages may call (`CORS_ORIGINS`). */
  corsOrigins: readonly string[]
  /** The documentation's page. */
  docs: PageAssets
  /** Where files are kept, and the secret of their addresses. */
  mediaStore: MediaStore
  mediaSecret: string
  /** Reaches the hubs' management services. */
  remote: Remote
  /** Sends webhooks; stopped with the service. */
  poster: Poster
  /** Sends alarms by mail; absent where there is no mail server. */
  sendMail?: SendMail | undefined
  /** How customers' devices are reached. */
  senders: Senders
  /** Due work of whoever else works with this database: the sandbox processor. */
  otherWork?: WorkKinds
  /** What diagnostics tell of this process, its name among others, and where its log files are. */
  facts: Omit<ProcessFacts, 'broker' | 'refused'> & {
    name: string
    logFolder: string
    brokerClients?: () => number
  }
  addressOf: (c: Context) => string
  /** Whether it is measured for Prometheus. */
  hasMetrics?: boolean
  /** See `EndpointParts`. */
  checkResponses?: boolean
}

export interface Cloud {
  app: App
  health: Health
  metrics: Metrics | undefined
  gateway: Gateway
  work: WorkRunner
  start(): void
  /** Ends the answers that have no end: before the server waits for those under way. */
  endStreams(): Promise<void>
  /** Stops in good order; nothing of it may be used after. */
  stop(): Promise<void>
}

const PURGE_MS = 3_600_000

/** The cloud service, put together; it does not listen (`main.ts` does). */
export function createCloud(options: CloudOptions): Cloud {
  const { processor } = options
  const context: CloudContext = { ...options.context, underWay: new Set() }
  const gatewayContext: CloudContext = { ...context, db: context.db.for('gateway') }
  const backgroundContext: CloudContext = { ...context, db: context.db.for('background') }
  const refusals = options.refusals ?? cloudRefusals(context)
  const gateway = new Gateway({
    domain: hubDomain,
    refusals,
    context: gatewayContext,
    broker: options.broker,
    processId: options.processId,
    ...(options.gatewaySettings && { settings: options.gatewaySettings }),
  })
  const services = { context, processor, commands: gateway.commands }
  const backgroundServices = { ...services, context: backgroundContext }
  const signer = mediaSigner({
    baseUrl: options.baseUrl,
    secret: options.mediaSecret,
    lifetimeMs: context.settings.fileAddressMs,
    clock: context.runtime.clock,
  })
  const media = createMedia({ context, store: options.mediaStore, signer })
  const work = new WorkRunner(
    backgroundContext,
    {
      ...commerceWork(backgroundServices),
      ...noticeWork(backgroundContext, options.senders),
      ...changeWork({ context: backgroundContext, remote: options.remote }),
      ...hubWork(backgroundContext),
      ...alarmWork(backgroundContext),
      ...workAlarmWork(backgroundContext),
      ...mailWork(backgroundContext, options.sendMail),
      ...webhookWork({
        context: backgroundContext,
        addressOf: (key) => media.addressOf(key),
        poster: options.poster,
      }),
      ...retentionWork(backgroundContext),
      ...media.work,
      'http.counts': recurring(backgroundContext, PURGE_MS, () =>
        purgeRateLimits(backgroundContext.db, context.runtime.clock),
      ),
      ...options.otherWork,
    },
    workWitness(backgroundContext),
  )
  const feed = new EventFeed(backgroundContext, media)
  const orderFeed = new OrderFeed(backgroundContext, media)
  const tasks = backgroundTasks(backgroundContext, options.processId, (task) =>
    runKinds(backgroundContext, work, task),
  )
  // Several processes share a PostgreSQL, never a SQLite file.
  const shared = context.db.kind === 'postgres' ? new SharedRateLimiter(backgroundContext) : undefined
  const served = options.demoHandlers ? routes : withoutDemo()
  const broker = () => ({
    connected: gateway.isConnected(),
    clients: options.facts.brokerClients?.() ?? null,
  })
  const health = new Health(context.runtime.clock, {
    database: () => context.db.ping(),
    broker: () => gateway.isConnected(),
  })
  const metrics = options.hasMetrics
    ? createMetrics({
        context: backgroundContext,
        broker,
        refused: () => refusals.totals,
        commit: options.facts.commit,
      })
    : undefined
  const app = createApp({
    health,
    ...(metrics && { onServed: (served) => metrics.onServed(served) }),
    isSecure: options.baseUrl.startsWith('https:'),
    corsOrigins: options.corsOrigins,
    context,
    resolveCredential: credentialResolver(context, options.verifyIdentity),
    limiter: shared ?? memoryRateLimiter(context.runtime.clock),
    media,
    refusals,
    checkResponses: options.checkResponses ?? false,
    addressOf: options.addressOf,
    handlers: {
      ...descriptionHandlers(context.runtime.clock, () => openApiDocument(options.baseUrl, served)),
      ...docsHandlers(context.runtime.random, options.docs),
      ...hubHandlers(context),
      ...temperatureHandlers(context),
      ...eventHandlers(context, media),
      ...streamHandlers(context, feed),
      ...alarmHandlers(context),
      ...facingHandlers(context),
      ...webhookHandlers(context, options.poster),
      ...inventoryHandlers(context, media),
      ...ownerOrderHandlers(context, media),
      ...refundHandlers(services),
      ...analyticsHandlers(context, media),
      ...dealHandlers(context, media),
      ...doorHandlers(services),
      ...controlHandlers(services),
      ...fridgeHandlers(services),
      ...configurationHandlers(services),
      ...operationHandlers(services),
      ...managementHandlers({ context, remote: options.remote }),
      ...maintenanceHandlers(context, media),
      ...bannerHandlers(context, media),
      ...fileHandlers(context, media, signer),
      ...userHandlers(context, options.verifyIdentity, media),
      ...accountHandlers(services, media),
      ...profileHandlers(context, media),
      ...productHandlers(context, media),
      ...orderHandlers(context, media, () => services.processor.leastAmount(context.settings.currency)),
      'consumer.orders.events': ({ params }) =>
        orderFeed.open({ userId: params.user_id, orderId: params.order_id }),
      ...cancellationHandlers(services),
      ...transferHandlers(context, options.verifyIdentity, media),
      ...deliveryHandlers(services),
      ...paymentHandlers(services, options.webhookSecret),
      ...walletHandlers(services),
      ...loyaltyHandlers(context),
      ...diagHandlers(
        context,
        {
          ...options.facts,
          refused: () => refusals.totals,
          broker,
        },
        options.facts.logFolder,
      ),
      ...taskHandlers(context, tasks),
      ...options.demoHandlers,
    },
  })
  let worker: Worker | undefined
  const endStreams = (): Promise<void> => {
    health.phase = 'stopping'
    orderFeed.stop()
    return feed.stop()
  }

  return {
    app,
    health,
    metrics,
    gateway,
    work,
    start() {
      health.phase = 'ready'
      gateway.start()
      feed.start()
      orderFeed.start()
      work.start()
      worker = startWorker(backgroundContext, { processId: options.processId, ...options.facts }, putBack)
    },
    endStreams,
    async stop() {
      await endStreams()
      shared?.stop()
      options.poster.stop()
      await work.stop()
      await worker?.stop()
      await gateway.stop()
      await settled(context)
    },
  }
}

const withoutDemo = () =>
  Object.fromEntries(Object.entries(routes).filter(([id]) => !(id in demoRoutes))) as Partial<typeof routes>
