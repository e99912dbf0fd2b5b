import { moreOrderCases, peopleCases } from './people-cases.ts'
import { walk } from './walk.ts'

walk('users, profiles and more of orders', { ...peopleCases, ...moreOrderCases })
