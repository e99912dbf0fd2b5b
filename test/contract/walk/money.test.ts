import { confirmationCases, itemRefundCases, loyaltyCases, walletCases, webhookCases } from './money-cases.ts'
import { walk } from './walk.ts'

walk('money', {
  ...walletCases,
  ...loyaltyCases,
  ...confirmationCases,
  ...webhookCases,
  ...itemRefundCases,
})
