import { consumerOrderRoutes } from './consumer-orders.ts'
import { consumerPaymentRoutes } from './consumer-payments.ts'
import { consumerProductRoutes } from './consumer-products.ts'
import { consumerProfileRoutes } from './consumer-profile.ts'
import { consumerUserRoutes } from './consumer-users.ts'
import { consumerWalletRoutes } from './consumer-wallet.ts'
import { dealRoutes } from './deals.ts'
import { diagRoutes } from './diag.ts'
import { ownerAnalyticsRoutes } from './owner-analytics.ts'
import { ownerBannerRoutes } from './owner-banners.ts'
import { ownerControlRoutes } from './owner-controls.ts'
import { ownerEventRoutes } from './owner-events.ts'
import { ownerHubRoutes } from './owner-hubs.ts'
import { ownerInventoryRoutes } from './owner-inventory.ts'
import { ownerMaintenanceRoutes } from './owner-maintenance.ts'
import { ownerOperationRoutes } from './owner-operations.ts'
import { ownerOrderRoutes } from './owner-orders.ts'
import { ownerAlarmRoutes } from './owner-alarms.ts'
import { ownerWebhookRoutes } from './owner-webhooks.ts'
import { demoRoutes, fileRoutes, rootRoutes } from './root-routes.ts'
import type { Route } from './route.ts'

/** Every route of the service. */
export const routes = {
  ...ownerHubRoutes,
  ...ownerEventRoutes,
  ...ownerAlarmRoutes,
  ...ownerWebhookRoutes,
  ...ownerInventoryRoutes,
  ...ownerOrderRoutes,
  ...ownerAnalyticsRoutes,
  ...ownerControlRoutes,
  ...ownerOperationRoutes,
  ...ownerMaintenanceRoutes,
  ...ownerBannerRoutes,
  ...dealRoutes,
  ...consumerUserRoutes,
  ...consumerProfileRoutes,
  ...consumerProductRoutes,
  ...consumerOrderRoutes,
  ...consumerPaymentRoutes,
  ...consumerWalletRoutes,
  ...fileRoutes,
  ...diagRoutes,
  ...rootRoutes,
  ...demoRoutes,
} satisfies Record<string, Route>
export type Routes = typeof routes
export type RouteId = keyof Routes
/** Routes that only a demo serves, and all other routes. */
export type DemoRouteId = keyof typeof demoRoutes
export type ServiceRouteId = Exclude<RouteId, DemoRouteId>
