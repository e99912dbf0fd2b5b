import {
  consumerOrderCases,
  consumerPaymentCases,
  consumerProductCases,
  consumerUserCases,
} from './consumer-cases.ts'
import { walk } from './walk.ts'

walk('the consumer interface', {
  ...consumerOrderCases,
  ...consumerPaymentCases,
  ...consumerUserCases,
  ...consumerProductCases,
})
