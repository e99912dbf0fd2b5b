import type { RouteCases } from './call.ts'
import {
  consumerOrderCases,
  consumerPaymentCases,
  consumerProductCases,
  consumerUserCases,
} from './consumer-cases.ts'
import { dealCases } from './deal-cases.ts'
import { deliveryCases } from './delivery-cases.ts'
import { diagCases } from './diag-cases.ts'
import { alarmCases, eventCases, webhookEndpointCases } from './event-cases.ts'
import { hubCases } from './hub-cases.ts'
import { mediaCases } from './media-cases.ts'
import { paymentMethodCases } from './method-cases.ts'
import { confirmationCases, itemRefundCases, loyaltyCases, walletCases, webhookCases } from './money-cases.ts'
import { ownerAnalyticsCases } from './owner-analytics-cases.ts'
import { ownerCases } from './owner-cases.ts'
import { moreOrderCases, peopleCases } from './people-cases.ts'
import { reportCases } from './report-cases.ts'
import { serviceCases } from './service-cases.ts'
import { staffCases } from './staff-cases.ts'

/** The walks. Each has a test file of the same name, so that they can run in parallel. */
export const walks = {
  owner: ownerCases,
  hubs: hubCases,
  events: eventCases,
  webhooks: webhookEndpointCases,
  alarms: alarmCases,
  'owner-analytics': ownerAnalyticsCases,
  reports: reportCases,
  deals: dealCases,
  media: mediaCases,
  consumer: {
    ...consumerOrderCases,
    ...consumerPaymentCases,
    ...consumerUserCases,
    ...consumerProductCases,
  },
  people: { ...peopleCases, ...moreOrderCases },
  delivery: deliveryCases,
  methods: paymentMethodCases,
  money: { ...walletCases, ...loyaltyCases, ...confirmationCases, ...webhookCases, ...itemRefundCases },
  diag: diagCases,
  service: serviceCases,
  staff: staffCases,
} satisfies Record<string, Record<string, RouteCases>>
export type WalkName = keyof typeof walks
