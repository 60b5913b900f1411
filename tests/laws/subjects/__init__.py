"""The policies under the laws: a module here for each module of tercet.policies, with its SUBJECTS."""
