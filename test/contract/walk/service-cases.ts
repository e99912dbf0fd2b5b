import { renewClaimCode } from '../../../cloud/enrolment/claim-codes.ts'
import { listReleases } from '../../../cloud/operations/releases/releases.ts'
import { certificateRequest } from '../../support/certificate-request.ts'
import { addTestRelease } from '../../support/release.ts'
import { testMedia } from '../../cloud/support/media.ts'
import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

const anybody = (): Promise<Call> => Promise.resolve({ as: 'nobody' })

const metadata =
  (file: string) =>
  async (world: World): Promise<Call> => {
    await released(world)
    return { as: 'nobody', params: { file } }
  }

/** A call for the file of a release. */
async function released({ shop: { context } }: World, file?: string): Promise<Call> {
  const [known] = await listReleases(context.db.kysely)
  const added = known ?? (await addTestRelease(context, testMedia(context), '2026.3.1+0a1b2c3'))
  return { as: 'nobody', params: { file: file ?? added.file } }
}

/** The service's descriptions of itself. */
export const serviceCases = {
  'root.index': { success: anybody },
  'root.pki.ca': { success: anybody },
  'root.pki.crl': { success: anybody },
  'root.releases.metadata': {
    success: metadata('timestamp.json'),
    errors: { not_found: metadata('2.root.json'), validation_error: metadata('\0') },
  },
  'root.releases.file': {
    success: (world) => released(world),
    errors: {
      not_found: (world) => released(world, 'larder-hub_1_arm64.tar.gz'),
      range_not_satisfiable: async (world) => ({
        ...(await released(world)),
        headers: { Range: 'bytes=999999-' },
      }),
      validation_error: (world) => released(world, '\0'),
    },
  },
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
