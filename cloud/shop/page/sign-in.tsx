import type { JSX } from 'preact'
import { words } from './language.ts'
import { show } from './place.ts'
import { session, signInAddress } from './store.ts'

/** Whether this browser has no customer, and a person could sign in. */
export const isSignedOut = (): boolean => {
  const known = session.value
  return known?.kind !== 'person' && known?.user_id == null && known?.can_sign_in === true
}

/** A view that needs a customer. */
export function SignInFirst({ title, why }: { title: string; why: string }): JSX.Element {
  return (
    <div class="card bg-base-100 p-4 grid gap-3 max-w-2xl mx-auto w-full">
      <h1 class="text-xl font-semibold">{title}</h1>
      <p>{why}</p>
      <div class="flex flex-wrap gap-2">
        {session.value?.can_sign_in && (
          <a class="btn btn-primary" href={signInAddress()}>
            {words().sign_in}
          </a>
        )}
        <button class="btn" onClick={() => show()}>
          {words().buy_here}
        </button>
      </div>
    </div>
  )
}
