import type { ErrorCode } from '../model/error-codes.ts'

/** The cause and the remedy of each error code, for the OpenAPI document and the guide on errors. */
export const errorHelp: Readonly<Record<ErrorCode, { cause: string; cure: string }>> = {
  invalid_cursor: {
    cause: 'The cursor belongs to another list, or the item that it names is no longer stored.',
    cure: 'Start without a cursor. For events: older ones are deleted; read the resources themselves.',
  },
  bad_request: {
    cause:
      'The request is not well-formed HTTP: a bad header, no `Host` or two, or a target that is not a path.',
    cure: 'Use an HTTP library, and send one `Host` header.',
  },
  expectation_failed: {
    cause: 'The request has an `Expect` header other than `100-continue`.',
    cure: 'Leave the header out.',
  },
  headers_too_large: {
    cause: 'The headers, address and token included, have more than 32 KiB.',
    cure: 'Shorten the address, or configure the issuer to put fewer roles into the token.',
  },
  webhook_limit_reached: {
    cause:
      'The owner has `WEBHOOKS_PER_OWNER` webhooks (16 by default), or the webhook has ten former secrets that still sign.',
    cure: 'Delete a webhook that is no longer used, or subscribe one webhook to several types of events. Wait until a former secret expires.',
  },
  invitation_limit_reached: {
    cause: 'The owner has `INVITATIONS_PER_OWNER` open invitations (50 by default).',
    cure: 'Withdraw an invitation, or wait until people accept theirs.',
  },
  contact_limit_reached: {
    cause:
      'The owner has 50 recipients of mails, or the address or the owner has had as many questions as a day allows (`UNASKED_MAILS_PER_ADDRESS`, `UNASKED_MAILS_PER_OWNER`).',
    cure: 'Remove a contact that no longer needs the mails. Ask the holder of an address again tomorrow.',
  },
  invalid_claim_code: {
    cause: 'The claim code is unknown, was used, has expired, or was replaced by a newer one.',
    cure: 'Check the code. Make a new one with `larder hubs claim-code ID`.',
  },
  invalid_json: {
    cause: 'The body is not JSON, or not UTF-8.',
    cure: 'Send the output of a JSON encoder, with `Content-Type: application/json`.',
  },
  invalid_signature: {
    cause:
      'The event of the processor has no signature, a signature of another secret, or one that is older than five minutes.',
    cure: 'Configure the secret of the endpoint, and correct the clock of the sender.',
  },
  authentication_required: {
    cause: 'The request has no credential, or has it in another header.',
    cure: 'Send `X-API-Key` or `Authorization: Bearer …`. The message names the credential that was found in the wrong place.',
  },
  invalid_api_key: {
    cause: 'The API key is misspelt or revoked.',
    cure: 'Send the whole key, from `lk` on. The operator replaces a revoked key.',
  },
  invalid_token: {
    cause: 'The token has another issuer or audience, or its signature is wrong.',
    cure: 'Get a new token from the issuer that the service is configured for.',
  },
  token_expired: {
    cause: 'The token or the API key has expired.',
    cure: 'Get a new one and repeat the call.',
  },
  refund_failed: {
    cause: 'The processor rejected the refund; `details.failure_reason` contains its reason.',
    cure: 'Request the refund again. If it fails again, settle the refund, then pay the customer in another way.',
  },
  card_declined: {
    cause: 'The bank declined the card; `details.decline_code` contains its reason.',
    cure: 'Ask the customer for another card. The order is NEW again.',
  },
  insufficient_funds: {
    cause: 'The balance of the wallet is below the total.',
    cure: 'Deposit first, or pay by card.',
  },
  payment_failed: {
    cause: 'The processor could not charge the payment method.',
    cure: 'Try again, or use another method. The order is NEW again.',
  },
  scope_missing: {
    cause: 'The credential is valid but lacks the scope `details.required_scope`.',
    cure: 'Use a key with that scope. Write scopes do not include read scopes, and the scopes of a key never change.',
  },
  unauthorized: {
    cause: 'The maintenance report belongs to a hub that the credential has no access to.',
    cure: 'Use a credential with access to the hub.',
  },
  hub_access_denied: {
    cause: 'The key is limited to other hubs, or the hub does not exist. A limited key does not learn which.',
    cure: 'Check the number of the hub, then the hubs of the key.',
  },
  forbidden: {
    cause: 'The path names another user than the token, or the address of a file is unsigned or expired.',
    cure: 'Take `user_id` from `bootstrap`. For a file: read its object again for a new address.',
  },
  external_payments_disabled: {
    cause:
      'The hub’s setting `external_payments` is `off`, or it is `customers` and the caller is an anonymous user.',
    cure: 'Pay by card or from the wallet. The operator enables external payments with `larder hubs set ID --external-payments customers`.',
  },
  hub_not_found: { cause: 'No hub has this number.', cure: 'List the hubs: `GET /api/v1/owners/hubs`.' },
  product_not_found: {
    cause: 'The hub has no such product, or the row has none.',
    cure: 'List the products: `GET /api/v1/hubs/{hub_id}/products`. A product number belongs to one hub.',
  },
  order_not_found: {
    cause:
      'No order has this number, it belongs to another user or hub, or it was an expired cart that was deleted.',
    cure: 'Create a new cart, or list the orders.',
  },
  bin_not_found: {
    cause: 'The hub has no bin with this number.',
    cure: 'Read the bins: `GET /api/v1/owners/hubs/get_hub_health`.',
  },
  deal_not_found: {
    cause: 'No deal has this number, or it belongs to another owner.',
    cure: 'List the deals of the hub: `GET /api/v1/deals/hub/{hub_id}`.',
  },
  not_found: { cause: 'The thing that the path names does not exist.', cure: 'Check the id.' },
  product_not_in_order: {
    cause: 'The order has no line with this product number or UPC.',
    cure: 'Take `product_id` from the lines of the order.',
  },
  user_not_found: {
    cause: 'The token is valid, but its identity has no user.',
    cure: 'Call `POST /api/v1/users/user/bootstrap`, or `/api/v1/users/user/bootstrap/guest` for a guest, once.',
  },
  payment_method_not_found: {
    cause: 'No payment method has this id, or it belongs to another customer.',
    cure: 'List the methods: `GET /api/v1/users/payments/methods`.',
  },
  fridge_not_found: {
    cause: 'The hub has no fridge with this number.',
    cure: 'Read the fridges: `GET /api/v1/owners/hubs/get_hub_health`.',
  },
  banner_not_found: {
    cause: 'No banner has this number, or it belongs to another owner.',
    cure: 'List the banners: `GET /api/v1/owners/owner/banners`.',
  },
  webhook_not_found: {
    cause: 'No webhook has this id, or it belongs to another owner.',
    cure: 'List the webhooks: `GET /api/v1/owners/webhooks`.',
  },
  alarm_not_found: {
    cause: 'No alarm has this id, or it belongs to another owner.',
    cure: 'List the alarms: `GET /api/v1/owners/alarms`.',
  },
  delivery_not_found: {
    cause: 'The webhook has no such delivery, or it is no longer stored.',
    cure: 'List the deliveries: `GET /api/v1/owners/webhooks/{webhook_id}/deliveries`.',
  },
  operation_not_found: {
    cause: 'No operation has this id, or it belongs to another owner.',
    cure: 'List the operations: `GET /api/v1/owners/operations`.',
  },
  route_not_found: {
    cause: 'The path is misspelt, or `/api/v1` is missing or doubled.',
    cure: 'The message names the most similar endpoint.',
  },
  method_not_allowed: {
    cause: 'The path exists, but not with this method.',
    cure: 'Use one of the methods in the header `Allow`.',
  },
  already_refunded: { cause: 'The whole order is already refunded.', cure: 'Nothing is left to do.' },
  order_in_progress: {
    cause: 'An order of the customer, or of the hub, is between QUEUED and COLLECTING.',
    cure: 'Wait until it has ended, then repeat the call.',
  },
  order_already_paid: {
    cause: 'The order is already paid.',
    cure: 'Read the order. It needs no second payment.',
  },
  order_not_editable: {
    cause: 'The order is no longer NEW: it is being paid, or was paid.',
    cure: 'Cancel the payment, or create a new cart.',
  },
  order_not_ready: {
    cause: 'No bin contains goods of the order, or the order has ended.',
    cure: 'Follow the order until it is READY.',
  },
  order_not_deletable: {
    cause: 'The hub has started the order, or the order has ended.',
    cure: 'Refund the missing units instead.',
  },
  order_state_conflict: {
    cause: 'The order has changed since the caller read it, or its present state does not allow the call.',
    cure: 'Read the order again, then repeat the call with its `version`.',
  },
  total_changed: {
    cause: 'Prices or deals have changed: the total is not `expected_total`. No money was taken.',
    cure: 'Show the new total to the customer, and ask again.',
  },
  insufficient_stock: {
    cause: 'The stock is below the quantity, because other customers bought the rest.',
    cure: 'Read the products, and reduce the quantity.',
  },
  hub_not_accepting_orders: {
    cause: 'The hub is paused, silent, in maintenance, retired, or was never connected.',
    cure: 'Try later, or use another hub. `hub_status` shows the state.',
  },
  no_bin_available: {
    cause: 'Every delivery bin is taken by orders that are not collected yet. No money was taken.',
    cure: 'Try again in some minutes.',
  },
  wallet_not_empty: {
    cause:
      'The wallet contains `details.balance_cents`, a deposit may still succeed, the processor has refused a refund, or the customer owes `details.debt_cents`.',
    cure: 'Spend the money and pay a debt by a deposit, or end both with `forfeit=true`.',
  },
  operation_settled: {
    cause: 'Somebody has already reported the opposite outcome.',
    cure: 'Read the operation, and count the row if neither answer is certain.',
  },
  duplicate_upc: { cause: 'Another product of this hub has the UPC.', cure: 'Change that product instead.' },
  idempotency_key_in_use: {
    cause: 'The first request with this key is still in progress.',
    cure: 'Wait a second, then send the same request again.',
  },
  request_timeout: { cause: 'The body arrived too slowly.', cure: 'Send the request again.' },
  payload_too_large: {
    cause: 'The body, a file, or all files together exceed the limit.',
    cure: 'Send less. The endpoint and the guide *Limits* list the limits.',
  },
  unsupported_media_type: {
    cause:
      'The body is not JSON, is encoded, or a file is none of the accepted images and videos, whatever its name.',
    cure: 'Set `Content-Type: application/json` without `Content-Encoding`, or convert the file.',
  },
  range_not_satisfiable: {
    cause: 'The file is shorter than the range.',
    cure: 'Send the request without `Range`.',
  },
  cart_empty: { cause: 'The order has no items.', cure: 'Add an item first.' },
  amount_too_small: {
    cause: 'The total is below the minimum of card payments, `details.least`.',
    cure: 'Pay from the wallet, or add an item.',
  },
  validation_error: {
    cause: 'A field is missing, has another type, or breaks a rule.',
    cure: 'The message names the field and the rule; `detail` lists every problem.',
  },
  invalid_location: {
    cause: 'The hub has no such cabinet, shelf or row.',
    cure: 'List the rows: `GET /api/v1/owners/hubs/facings`.',
  },
  invalid_quantity: {
    cause:
      'The quantity is negative, no whole number, or above the limit: the capacity of the row, or 100 units of an unpaid order.',
    cure: 'Send the counted units, or pay smaller orders.',
  },
  invalid_price: { cause: 'The price is no positive whole number.', cure: 'Send cents: 1.89 is 189.' },
  insufficient_quantity: {
    cause: 'The quantity is above the units that were bought or can still be refunded.',
    cure: 'Read `qty` and `refunded_quantity` of the line.',
  },
  hub_id_required: { cause: 'The form has no `hubId`.', cure: 'Send the number of the hub in the form.' },
  invalid_amount: {
    cause:
      'The amount is not between 1 and the rest that can be refunded. A settlement has the amount that is owed.',
    cure: 'Read the order. Leave `amount` out to refund the rest. Settle `details.owed` if you pay the customer this amount.',
  },
  invalid_destination: {
    cause: 'The destination is not “Bank Account”, or `destination` and `refund_destination` differ.',
    cure: 'Leave both out: the money goes to the original payment method.',
  },
  bin_not_in_order: {
    cause: 'The order has no goods in that bin.',
    cure: 'Read `bins` of the order, or name no bin for all.',
  },
  invalid_upc: { cause: 'A digit is wrong or missing.', cure: 'Send all 12 digits as text.' },
  invalid_purchase_price: {
    cause: 'The purchase price is negative or no whole number.',
    cure: 'Send cents: 0.70 is 70.',
  },
  idempotency_key_reused: {
    cause: 'The key was used with another request within 24 hours.',
    cure: 'Create a new key for each new request.',
  },
  rate_limit_exceeded: {
    cause: 'The allowance of the minute, or a share of the user, key or network, is used up.',
    cure: 'Wait `Retry-After` seconds. Refused calls do not count.',
  },
  internal_error: {
    cause: 'The service failed.',
    cure: 'Repeat the call with the same `Idempotency-Key`. Report the `request_id` to the operator if it persists.',
  },
  hardware_error: {
    cause:
      'The hub did not execute the command: `details.reason` is `offline`, `nack`, `fault` or `interlock` (502), or `timeout` (504), after which it may have moved.',
    cure: '502: check the hub’s health, then repeat the call. 504: check the hub before you repeat it; `details.command_id` names the command.',
  },
  processor_unavailable: {
    cause: 'The card processor does not answer.',
    cure: 'Repeat the call with the same `Idempotency-Key` after `Retry-After`. The service does not repeat it.',
  },
  identity_unavailable: {
    cause: 'The service cannot read the issuer’s keys.',
    cure: 'Repeat the call after `Retry-After`.',
  },
  service_unavailable: {
    cause: 'The database is unreachable or busy, or the service is starting or stopping.',
    cure: 'Repeat the call after `Retry-After`, with the same `Idempotency-Key`.',
  },
  hub_offline: {
    cause: 'The hub has reported nothing for 90 seconds.',
    cure: 'Read the alarms: `GET /api/v1/owners/alarms`. Try later.',
  },
}
