import type { Context } from 'hono'
import type { DemoRouteId } from '../protocol/contract/routes.ts'
import { routes } from '../protocol/contract/routes.ts'
import { demoRoutes } from '../protocol/contract/root-routes.ts'
import type { OpenTransport } from '../protocol/mqtt/transport.ts'
import { analyticsHandlers } from './commerce/analytics/reports.ts'
import { productHandlers } from './commerce/catalogue/products.ts'
import { inventoryHandlers } from './commerce/catalogue/inventory.ts'
import { bannerHandlers } from './commerce/deals/banners.ts'
import { commerceWork } from './commerce/work.ts'
import type { CloudContext } from './platform/context.ts'
import { configurationHandlers } from './operations/controls/configuration.ts'
import { controlHandlers, fridgeHandlers } from './operations/controls/handlers.ts'
import { deliveryHandlers } from './operations/controls/open-delivery.ts'
import type { VerifyIdentity } from './platform/credentials/identity-token.ts'
import { credentialResolver } from './platform/credentials/resolve.ts'
import { dealHandlers } from './commerce/deals/handlers.ts'
import { hubDomain } from './hub-domain.ts'
import { Gateway } from './gateway/gateway.ts'
import { diagHandlers } from './operations/diag/handlers.ts'
import type { ProcessFacts } from './operations/diag/system-info.ts'
import { cloudRefusals, type CloudRefusals } from './platform/refusals.ts'
import type { GatewaySettings } from './platform/settings/settings.ts'
import { createApp, type App } from './platform/http/app.ts'
import type { Handlers } from './platform/http/handler.ts'
import { openApiDocument } from './platform/http/openapi.ts'
import { databaseRateLimiter, memoryRateLimiter, purgeRateLimits } from './platform/http/rate-limit.ts'
import { rootHandlers } from './platform/http/docs.ts'
import { doorHandlers } from './operations/doors/handlers.ts'
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
import { orderHandlers, ownerOrderHandlers, transferHandlers } from './commerce/orders/handlers.ts'
import { cancellationHandlers } from './commerce/fulfilment/delete-order.ts'
import { refundHandlers } from './commerce/refunds/refund-requests.ts'
import { paymentHandlers } from './commerce/payments/handlers.ts'
import type { CardProcessor } from './commerce/processors/processor.ts'
import { retentionWork } from './retention.ts'
import { backgroundTasks, runKinds, taskHandlers } from './operations/diag/background-tasks.ts'
import { recurring, WorkRunner, type WorkKinds } from './platform/work/runner.ts'
import { startWorker, type Worker } from './platform/work/workers.ts'
import { accountHandlers, userHandlers } from './people/users/handlers.ts'
import { profileHandlers } from './people/users/profile.ts'
import { walletHandlers } from './commerce/wallet/handlers.ts'

export interface CloudOptions {
  context: CloudContext
  openTransport: OpenTransport
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
  /** Where files are kept, and the secret of their addresses. */
  mediaStore: MediaStore
  mediaSecret: string
  /** Reaches the hubs' management services. */
  remote: Remote
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
  /** See `EndpointParts`. */
  checkResponses?: boolean
}

export interface Cloud {
  app: App
  gateway: Gateway
  work: WorkRunner
  start(): void
  /** Stops in good order; nothing of it may be used after. */
  stop(): Promise<void>
}

const PURGE_MS = 3_600_000

/** The cloud service, put together; it does not listen (`main.ts` does). */
export function createCloud(options: CloudOptions): Cloud {
  const { context, processor } = options
  const refusals = options.refusals ?? cloudRefusals(context)
  const gateway = new Gateway({
    domain: hubDomain,
    refusals,
    context,
    openTransport: options.openTransport,
    processId: options.processId,
    ...(options.gatewaySettings && { settings: options.gatewaySettings }),
  })
  const services = { context, processor, commands: gateway.commands }
  const signer = mediaSigner({
    baseUrl: options.baseUrl,
    secret: options.mediaSecret,
    lifetimeMs: context.settings.fileAddressMs,
    clock: context.runtime.clock,
  })
  const media = createMedia({ context, store: options.mediaStore, signer })
  const work = new WorkRunner(context, {
    ...commerceWork(services),
    ...noticeWork(context, options.senders),
    ...changeWork({ context, remote: options.remote }),
    ...retentionWork(context),
    ...media.work,
    'http.counts': recurring(context, PURGE_MS, () => purgeRateLimits(context.db, context.runtime.clock)),
    ...options.otherWork,
  })
  const tasks = backgroundTasks(context, options.processId, (task) => runKinds(context, work, task))
  const served = options.demoHandlers ? routes : withoutDemo()
  const app = createApp({
    isSecure: options.baseUrl.startsWith('https:'),
    context,
    resolveCredential: credentialResolver(context, options.verifyIdentity),
    // Several processes share a PostgreSQL, never a SQLite file.
    limiter:
      context.db.kind === 'postgres'
        ? databaseRateLimiter(context.db, context.runtime.clock)
        : memoryRateLimiter(context.runtime.clock),
    media,
    refusals,
    checkResponses: options.checkResponses ?? false,
    addressOf: options.addressOf,
    handlers: {
      ...rootHandlers(context.runtime.clock, () => openApiDocument(options.baseUrl, served)),
      ...hubHandlers(context),
      ...inventoryHandlers(context, media),
      ...ownerOrderHandlers(context, media),
      ...refundHandlers(services),
      ...analyticsHandlers(context, media),
      ...dealHandlers(context, media),
      ...doorHandlers(services),
      ...controlHandlers(services),
      ...fridgeHandlers(services),
      ...configurationHandlers(services),
      ...managementHandlers({ context, remote: options.remote }),
      ...maintenanceHandlers(context, media),
      ...bannerHandlers(context, media),
      ...fileHandlers(context, media, signer),
      ...userHandlers(context, options.verifyIdentity, media),
      ...accountHandlers(services, media),
      ...profileHandlers(context, media),
      ...productHandlers(context, media),
      ...orderHandlers(context, media),
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
          broker: () => ({
            connected: gateway.isConnected(),
            clients: options.facts.brokerClients?.() ?? null,
          }),
        },
        options.facts.logFolder,
      ),
      ...taskHandlers(context, tasks),
      ...options.demoHandlers,
    },
  })
  let worker: Worker | undefined

  return {
    app,
    gateway,
    work,
    start() {
      gateway.start()
      work.start()
      worker = startWorker(context, { processId: options.processId, ...options.facts })
    },
    async stop() {
      await work.stop()
      await worker?.stop()
      await gateway.stop()
    },
  }
}

const withoutDemo = () =>
  Object.fromEntries(Object.entries(routes).filter(([id]) => !(id in demoRoutes))) as Partial<typeof routes>
