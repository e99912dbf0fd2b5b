import { renewClaimCode } from '../../../cloud/enrolment/claim-codes.ts'
import { certificateRequest } from '../../support/certificate-request.ts'
import type { Call, RouteCases } from './call.ts'

const anybody = (): Promise<Call> => Promise.resolve({ as: 'nobody' })

/** The service's descriptions of itself. */
export const serviceCases = {
  'root.index': { success: anybody },
  'root.pki.ca': { success: anybody },
  'root.pki.crl': { success: anybody },
  'owner.hubs.enroll': {
    async success({ shop: { context } }) {
      const { code } = await context.db.transact((tx) => renewClaimCode(tx, context, 1))
      return { as: 'nobody', body: { claim_code: code, csr: await certificateRequest() } }
    },
    errors: {
      invalid_claim_code: async () => ({
        as: 'nobody',
        body: { claim_code: 'AAAAAAAA', csr: await certificateRequest() },
      }),
      invalid_json: () => Promise.resolve({ as: 'nobody', text: '{' }),
      validation_error: () => Promise.resolve({ as: 'nobody', body: { claim_code: 'AAAAAAAA', csr: '' } }),
    },
  },
  'root.openapi': { success: anybody },
  'root.docs': { success: anybody },
  'root.docs.file': {
    success: () => Promise.resolve({ as: 'nobody', params: { path: 'main.js' } }),
    errors: {
      not_found: () => Promise.resolve({ as: 'nobody', params: { path: 'none.js' } }),
      validation_error: () => Promise.resolve({ as: 'nobody', params: { path: '\0' } }),
    },
  },
} satisfies Record<string, RouteCases>
