import { paymentMethodCases } from './method-cases.ts'
import { walk } from './walk.ts'

walk('payment methods and mobile wallets', paymentMethodCases)
