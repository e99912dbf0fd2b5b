/** Ways of paying that no card processor has to do with (contract §5), as `payments.processor` and `.method` name them. */
export const EXTERNAL = 'external'
export const WALLET = 'wallet'
