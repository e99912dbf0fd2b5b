import type { Route } from './route.ts'

/** Who calls an endpoint: the first tag of each operation. */
export const audiences = {
  'Owner API':
    'For owners and integrators: hubs, stock, orders, money, deals and events. Below `/api/v1` only.',
  'Customer API': 'For the apps and pages of customers. Below `/api/v1` and at `/`.',
  Service: 'For everybody, and for operators of the service.',
} as const
export type Audience = keyof typeof audiences

export function audienceOf({ interface: side, tag }: Pick<Route, 'interface' | 'tag'>): Audience {
  if (side === 'owner') return 'Owner API'
  return side === 'consumer' && tag !== 'Service' ? 'Customer API' : 'Service'
}

/** Subjects of the interface: the second tag of each operation. Each belongs to one audience. */
export const tagWords: Readonly<Record<string, string>> = {
  Hubs: 'The hubs of an owner: place, layout, doors, temperatures and health.',
  Events: 'Events of hubs, orders and stock, as a list and live.',
  Webhooks: 'Addresses that receive events, and their deliveries.',
  Inventory: 'Products, prices, and the units in each row.',
  'Order history': 'Orders of a hub and their refunds.',
  Orders: 'Carts and orders of a customer.',
  Analytics: 'Revenue, orders, customers and profits.',
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
