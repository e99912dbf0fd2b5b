import { analyticsHandlers } from './commerce/analytics/reports.ts'
import { salesReportHandlers } from './commerce/analytics/sales-report.ts'
import { productHandlers } from './commerce/catalogue/products.ts'
import { facingHandlers } from './commerce/catalogue/facings.ts'
import { inventoryHandlers } from './commerce/catalogue/inventory.ts'
import { bannerHandlers } from './commerce/deals/banners.ts'
import type { CommerceServices } from './commerce/services.ts'
import { configurationHandlers } from './operations/controls/configuration.ts'
import type { ControlServices } from './operations/controls/control.ts'
import { controlHandlers } from './operations/controls/handlers.ts'
import { operationHandlers } from './operations/controls/unknown-operations.ts'
import { deliveryHandlers } from './operations/controls/open-delivery.ts'
import type { VerifyIdentity } from './platform/credentials/identity-token.ts'
import { dealHandlers } from './commerce/deals/handlers.ts'
import { doorHandlers } from './operations/doors/handlers.ts'
import { auditHandlers } from './operations/reports/audit.ts'
import { fleetHandlers } from './operations/reports/fleet.ts'
import { restockHandlers } from './operations/reports/restock.ts'
import { alarmHandlers } from './operations/alarms/handlers.ts'
import { temperatureHandlers } from './operations/hubs/temperatures.ts'
import { hubHandlers } from './operations/hubs/hubs.ts'
import { loyaltyHandlers } from './commerce/ledger/points.ts'
import { managementHandlers } from './operations/ssh/bin-changes.ts'
import type { Remote } from './operations/ssh/remote.ts'
import type { Media } from './platform/media/media.ts'
import { maintenanceHandlers } from './operations/maintenance/reports.ts'
import { type OrderFeed, orderFeedHandlers } from './commerce/orders/order-feed.ts'
import {
  orderHandlers,
  ownerOrderHandlers,
  transferHandlers,
  storefrontHandlers,
} from './commerce/orders/handlers.ts'
import { evidenceHandlers } from './operations/reports/order-evidence.ts'
import { receiptHandlers } from './operations/reports/receipt.ts'
import { cancellationHandlers } from './commerce/fulfilment/delete-order.ts'
import { refundHandlers } from './commerce/refunds/handlers.ts'
import { settlementHandlers } from './commerce/refunds/settle-refunds.ts'
import { paymentReportHandlers } from './commerce/payments/payment-report.ts'
import { paymentHandlers } from './commerce/payments/handlers.ts'
import { accountHandlers, userHandlers } from './people/users/handlers.ts'
import { profileHandlers } from './people/users/profile.ts'
import { contactHandlers } from './people/staff/contacts.ts'
import type { MailParts } from './people/staff/contact-question.ts'
import { invitationHandlers } from './people/staff/invitations.ts'
import { staffHandlers } from './people/staff/staff.ts'
import { walletHandlers } from './commerce/ledger/wallet.ts'

/** Options of the commerce routes; see `CloudOptions`. */
interface CommerceOptions {
  verifyIdentity: VerifyIdentity
  webhookSecret: string | readonly string[]
  baseUrl: string
  publishableKey?: string | undefined
}

export const commerceHandlers = (
  services: CommerceServices,
  media: Media,
  orderFeed: OrderFeed,
  { verifyIdentity, webhookSecret, baseUrl, publishableKey }: CommerceOptions,
) => {
  const { context, processor } = services
  const cards = { processor: processor.name, publishable_key: publishableKey ?? null }
  return {
    ...storefrontHandlers(context, cards),
    ...productHandlers(context, media, baseUrl),
    ...facingHandlers(context),
    ...inventoryHandlers(context, media),
    ...bannerHandlers(context, media),
    ...dealHandlers(context, media),
    ...analyticsHandlers(context, media),
    ...salesReportHandlers(context),
    ...orderHandlers(context, media, () => processor.leastAmount(context.settings.currency)),
    ...orderFeedHandlers(orderFeed),
    ...transferHandlers(context, verifyIdentity, media),
    ...ownerOrderHandlers(context, media),
    ...cancellationHandlers(services),
    ...refundHandlers(services),
    ...settlementHandlers(services),
    ...paymentReportHandlers(context),
    ...paymentHandlers(services, webhookSecret),
    ...walletHandlers(services),
    ...loyaltyHandlers(context),
  }
}

export const operationsHandlers = (services: ControlServices, media: Media, remote: Remote) => {
  const { context } = services
  return {
    ...hubHandlers(context),
    ...temperatureHandlers(context),
    ...doorHandlers(services),
    ...controlHandlers(services),
    ...configurationHandlers(services),
    ...operationHandlers(services),
    ...deliveryHandlers(services),
    ...managementHandlers({ context, remote }),
    ...maintenanceHandlers(context, media),
    ...alarmHandlers(context),
    ...restockHandlers(context),
    ...fleetHandlers(context),
    ...auditHandlers(context),
    ...receiptHandlers(context),
    ...evidenceHandlers(context, media),
  }
}

export const peopleHandlers = (
  services: CommerceServices,
  media: Media,
  { verifyIdentity, ...mails }: MailParts & { verifyIdentity: VerifyIdentity },
) => ({
  ...staffHandlers(services.context),
  ...contactHandlers(services.context, mails),
  ...invitationHandlers(services.context, mails),
  ...userHandlers(services.context, verifyIdentity, media),
  ...accountHandlers(services, media),
  ...profileHandlers(services.context, media),
})
