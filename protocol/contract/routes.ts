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
import { ownerContactRoutes } from './owner-contacts.ts'
import { ownerControlRoutes } from './owner-controls.ts'
import { ownerEventRoutes } from './owner-events.ts'
import { ownerHubRoutes } from './owner-hubs.ts'
import { ownerInventoryRoutes } from './owner-inventory.ts'
import { ownerMaintenanceRoutes } from './owner-maintenance.ts'
import { ownerOperationRoutes } from './owner-operations.ts'
import { ownerPeopleRoutes } from './owner-people.ts'
import { ownerReportRoutes } from './owner-reports.ts'
import { ownerOrderRoutes } from './owner-orders.ts'
import { ownerAlarmRoutes } from './owner-alarms.ts'
import { ownerWebhookRoutes } from './owner-webhooks.ts'
import { enrolmentRoutes } from './enrolment.ts'
import { demoRoutes, fileRoutes, rootRoutes } from './root-routes.ts'
import type { Route } from './route.ts'

/** Every route of the service. */
export const routes = {
  ...ownerHubRoutes,
  ...enrolmentRoutes,
  ...ownerEventRoutes,
  ...ownerAlarmRoutes,
  ...ownerWebhookRoutes,
  ...ownerInventoryRoutes,
  ...ownerOrderRoutes,
  ...ownerAnalyticsRoutes,
  ...ownerReportRoutes,
  ...ownerPeopleRoutes,
  ...ownerContactRoutes,
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

/** Who calls an endpoint: the first tag of each operation. */
export const audiences = {
  'Owner API':
    'For owners and integrators: hubs, stock, orders, money, deals and events. Below `/api/v1` only.',
  'Customer API': 'For the apps and pages of customers. Below `/api/v1` and at `/`.',
  Service: 'For everybody, and for operators of the service.',
} as const
type Audience = keyof typeof audiences

export function audienceOf({ interface: side, tag }: Pick<Route, 'interface' | 'tag'>): Audience {
  if (side === 'owner') return 'Owner API'
  return side === 'consumer' && tag !== 'Service' ? 'Customer API' : 'Service'
}

/** Subjects of the interface: the second tag of each operation. Each belongs to one audience. */
export const tagText: Readonly<Record<string, string>> = {
  Hubs: 'The hubs of an owner: place, layout, doors, temperatures and health.',
  Events: 'Events of hubs, orders and stock, as a list and live.',
  Webhooks: 'Addresses that receive events, and their deliveries.',
  Inventory: 'Products, prices, and the units in each row.',
  'Order history': 'Orders of a hub and their refunds.',
  Orders: 'Carts and orders of a customer.',
  Analytics: 'Revenue, orders, customers and profits.',
  Reports: 'Sales, payments, refills, hubs and acts of people over any range of days, as JSON or CSV.',
  People: 'People with a role at the hubs of an owner, recipients of mails, and API keys.',
  Controls: 'Commands for bins, fridges and the intake of orders, over MQTT and over SSH.',
  Maintenance: 'Reports of service work at hubs.',
  Banners: 'Pictures that a hub shows.',
  Deals: 'Discounts: conditions, rewards, limits and redemptions.',
  Alarms: 'Problems that need a person.',
  Operations: 'Motions of hubs with an unknown outcome.',
  Users: 'Customers and their identities.',
  Profile: 'Names, contacts, hub and devices of a customer.',
  Products: 'Products that customers can buy at a hub.',
  Payments: 'Payment methods and payments.',
  Wallet: 'Prepaid money of a customer.',
  Loyalty: 'Points for completed orders.',
  Service: 'Version, description and files of the service.',
  Diagnostics: 'System information and logs for operators.',
  'Background tasks': 'Starts background tasks now.',
  Identity: 'The identity issuer of a demo.',
}
